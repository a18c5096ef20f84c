"""A row of the file as it comes into this console: its numbers moved, its actors those of here, and nothing under way.

A file may come from anywhere, so every reference is held against the file's own tree: no row ever joins another one.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
from django.db import models

from console.archive.layout import Part
from console.archive.reading import damaged
from console.archive.tables import Table
from console.models import Actor, Request
from documents.models import Attachment, AttachmentStatus, AuthorRuns, Document
from lineage.actions.settling import QUIET
from lineage.models import (
    Approval,
    ApprovalStatus,
    Conversation,
    Kind,
    Landing,
    Root,
    State,
    Submission,
    SubmissionStatus,
    SubmissionType,
    Task,
    TaskOutcome,
    TaskStatus,
    TranscriptFolder,
)

RESTORED = "restored"
WHY = "The tree was restored from a file. What was under way when it was exported does not go on by itself."
NO_FILE = "its file was not in the export"

Row = dict[str, Any]


@dataclass(kw_only=True)
class Moving:
    """What is known of the file and of this console. `unsettled` collects conversations in which something was under way."""

    root: int
    conversations: Mapping[int, str]  # number: kind
    documents: frozenset[int]
    files: frozenset[str]  # originals of attachments that the file has
    parts: Mapping[str, Part]
    distances: Mapping[str, int]  # by table
    actors: Mapping[int, int]
    taken_folders: frozenset[tuple[str, str]]  # (format, path) of session files that are read here
    moment: datetime
    unsettled: set[int] = field(default_factory=set)

    def mover(self, table: Table) -> Callable[[Row], Row]:
        """Turns a row of that table, as the file has it, into one of here. Refusal: `damaged`."""
        steps: list[Callable[[Row], None]] = []
        for column in table.fields:
            if column.primary_key and table.numbered:
                if table.model not in (Conversation, Document):
                    steps.append(self._by_distance(column.attname, self.distances[table.name]))
            elif isinstance(column, models.ForeignKey):
                steps.append(self._reference(table, column))
        rule = _RULES.get(table.model)

        def moved(row: Row) -> Row:
            for step in steps:
                step(row)
            if rule is not None:
                rule(self, row)
            return row

        return moved

    def number(self, model: type[models.Model], number: int) -> int:
        """A number of a row that is not kept, as it is here."""
        return number + self.distances[str(model._meta.model_name)]

    def _by_distance(self, name: str, distance: int) -> Callable[[Row], None]:
        def step(row: Row) -> None:
            row[name] += distance

        return step

    def _reference(self, table: Table, column: "models.ForeignKey[Any, Any]") -> Callable[[Row], None]:
        name, find = column.attname, self._finder(column.related_model)

        def step(row: Row) -> None:
            if row[name] is not None:
                found = find(row[name])
                if found is None:
                    raise damaged(f"a row of {table.name} names {column.name} {row[name]}, which is not in it")
                row[name] = found

        return step

    def _finder(self, model: Any) -> Callable[[int], int | None]:
        if model is Actor:
            return self.actors.get
        if model is Conversation:
            return lambda number: number if number in self.conversations else None
        if model is Document:
            return lambda number: number if number in self.documents else None
        if model is Root:
            return lambda number: number if number == self.root else None
        name = str(model._meta.model_name)
        key = model._meta.pk
        if isinstance(key, models.ForeignKey):  # its key is another row's
            return self._finder(key.related_model)
        # Nobody else has a number of the reserved ones; whether the row is there, the database says.
        part, distance = self.parts[name], self.distances[name]
        return lambda number: number + distance if part.first <= number <= part.last else None


def _conversation(moving: Moving, row: Row) -> None:
    for step in row["path"] if isinstance(row["path"], list) else [None]:
        if not isinstance(step, list) or len(step) != 2 or step[0] not in moving.conversations:
            raise damaged(f"#{row['id']} inherits from what is not in it")
    if row["turn_open"] or row["state"] not in QUIET:
        row["turn_open"], row["state"], row["state_why"] = False, State.IDLE, ""
        row["state_since"] = moving.moment
        row["state_version"] += 1
        moving.unsettled.add(row["id"])


def _task(moving: Moving, row: Row) -> None:
    if row["status"] == TaskStatus.TERMINAL:
        return
    if row["status"] != TaskStatus.COMPLETING:
        row["outcome"], row["error"] = TaskOutcome.ABORTED, WHY
    row["status"], row["aborting"], row["ended"] = TaskStatus.TERMINAL, False, moving.moment
    row["lease"] = row["lease_until"] = None
    row["subject"] = row["waits_as"] = row["why"] = row["blocked"] = ""


def _submission(moving: Moving, row: Row) -> None:
    """Inputs get no answer any more; a finish that waited to wake a run waits as a note, so that it is still told."""
    queued = row["status"] == SubmissionStatus.QUEUED
    if not queued and row["status"] != SubmissionStatus.PLACED:
        return
    if queued and row["kind"] == "lineage.finished":
        row["type"] = SubmissionType.WRITE
    if row["type"] == SubmissionType.INPUT or not queued:
        row["status"], row["reason"], row["why"] = SubmissionStatus.UNANSWERED, RESTORED, WHY
        row["ended"] = moving.moment
    if moving.conversations[row["conversation_id"]] != Kind.SESSION:  # there it is mail, and waits for its reader
        moving.unsettled.add(row["conversation_id"])


def _approval(moving: Moving, row: Row) -> None:
    if row["status"] == ApprovalStatus.WAITING:
        row["status"], row["comment"], row["decided"] = ApprovalStatus.ENDED, WHY, moving.moment


def _landing(moving: Moving, row: Row) -> None:
    row["restored"] = True


def _attachment(moving: Moving, row: Row) -> None:
    if row["status"] == AttachmentStatus.PENDING and row["name"] not in moving.files:
        row["status"], row["reason"] = AttachmentStatus.UNREADABLE, NO_FILE


def _author_runs(moving: Moving, row: Row) -> None:
    try:
        runs = msgspec.json.decode(row["runs"], type=list[tuple[int, int]])
        moved = [(moving.actors[actor], length) for actor, length in runs]
    except (msgspec.DecodeError, KeyError):
        raise damaged(f"the authors of document {row['document_id']} are not in it") from None
    if moved != runs:
        row["runs"] = msgspec.json.encode(moved).decode()


def _folder(moving: Moving, row: Row) -> None:
    """Session files that are read here already stay with what they brought here; the restored lines are kept beside them."""
    if (row["format"], row["path"]) in moving.taken_folders:
        row["path"] += f" (restored with #{moving.root})"


_RECEIVER = re.compile(r"(root|conversation|document):([0-9]{1,18})")
_OWN_KEY = re.compile(r"(landing:|notify:[0-9]+:task:)([0-9]{1,18})")


def _request(moving: Moving, row: Row) -> None:
    """Repeats stay repeats (R4): numbers in keys of the product and in results are moved with the rows that they name."""
    receiver = _RECEIVER.fullmatch(row["receiver"])
    known: Mapping[str, Any] = {
        "root": {moving.root}, "conversation": moving.conversations, "document": moving.documents,
    }  # fmt: skip
    if receiver is None or int(receiver[2]) not in known[receiver[1]]:
        raise damaged("a remembered request is of something that is not in it")
    key = _OWN_KEY.fullmatch(row["request_id"]) if row["actor_id"] is None else None
    if key is not None:
        model = Landing if key[1] == "landing:" else Task
        row["request_id"] = f"{key[1]}{moving.number(model, int(key[2]))}"
    result = json.loads(row["result"])
    moved = moved_result(moving, result)
    if moved != result:
        row["result"] = json.dumps(moved)


def moved_result(moving: Moving, result: Any) -> Any:
    """The result of a request with the numbers of rows as they are here. Entries, conversations, documents and names are kept."""
    if not isinstance(result, dict):
        return result
    if isinstance(result.get("task"), int):  # of notify
        return {**result, "task": moving.number(Task, result["task"])}
    if isinstance(result.get("id"), int):  # of a landing, which names its root; else of a submission or a note
        return {**result, "id": moving.number(Landing if "root" in result else Submission, result["id"])}
    return result


_RULES: dict[type[models.Model], Callable[[Moving, Row], None]] = {
    Conversation: _conversation,
    Task: _task,
    Submission: _submission,
    Approval: _approval,
    Landing: _landing,
    Attachment: _attachment,
    AuthorRuns: _author_runs,
    TranscriptFolder: _folder,
    Request: _request,
}

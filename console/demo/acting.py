"""*demo_run*: an agent of the demo that needs no model. What it says is written here; its calls are tasks like any other's, so the
edit waits for a person, takes place once it is approved, and the run goes on."""

import json
from typing import Any

from django.db import transaction

from lineage.actions.agents import agent_of
from lineage.actions.drafts import place_partial, store_draft
from lineage.actions.entries import NewEntry, lock_conversation, place_entries
from lineage.actions.runs import NO_MODEL, is_working
from lineage.actions.settling import settle
from lineage.actions.starts import create_task
from lineage.actions.states import announce_state
from lineage.actions.wakes import children_subject
from lineage.models import (
    Draft,
    Entry,
    Outcome,
    Submission,
    SubmissionStatus,
    Task,
    TaskStatus,
)
from lineage.tasks.definitions import Definition, register_kind
from lineage.tasks.kinds.generation import ended, start_calls
from lineage.tasks.running import Aborted, LeaseLost, Run
from lineage.transcripts.tools import call_line

KIND = "demo_run"
MODEL = "the demo's script"
WORD_SECONDS = 0.06  # between two words: as fast as a model writes

README = "# Parcels\n\nThe working folder of the demo's root: agents of a configured model read and edit here.\n"
PROMPT = "Say in the README how carriers' webhooks are retried."
TITLE = "Describe the webhooks"

_ADDED = "\n## Webhooks\n\nA webhook is a row before it is answered. It is tried again after 1, 4, 16 and 64 minutes.\n"
_LOOK = ("I will read the README before I change it.", ("read_file", {"path": "README.md"}))
_EDIT = (
    "It says nothing of webhooks yet. I would add one section, with the pauses that we agreed on. The edit waits for you: "
    "approve it, or decline it with a comment.",
    (
        "edit_file",
        {"path": "README.md", "old_string": "read and edit here.\n", "new_string": f"read and edit here.\n{_ADDED}"},
    ),
)
_DONE = "The README has the section **Webhooks** now. Nothing else was changed."
_LEFT = "I left the README as it is. Tell me what it should say instead."


def start_demo_run(*, conversation: int) -> None:
    """Begin the run, at most once: its first input is answered by the script, whatever model is configured later."""
    with transaction.atomic():
        row = lock_conversation(conversation)
        if is_working(row) or Task.objects.filter(conversation=row, kind=KIND).exists():
            return
        task = create_task(kind=KIND, conversation=row, input={})
        asked = Submission.objects.filter(conversation=row, status=SubmissionStatus.UNANSWERED, reason=NO_MODEL[0])
        asked.update(status=SubmissionStatus.PLACED, reason="", why="", task=task, ended=None)
        settle(conversation=row, fresh=True, announce=True)


def say(run: Run) -> None:
    """Write the next answer word by word, as a model's would come, and start the call that it ends with."""
    number = int(run.facts.get("round", 1))
    text, call = _next(run, number)
    if Draft.objects.filter(conversation=run.conversation, task=run.task).exists():  # a crash left it: begin it anew
        with run.commit() as commit:
            place_partial(
                conversation=commit.conversation, outcome=Outcome.ABORTED, why="The worker ended; it is written again."
            )
            announce_state(conversation=commit.conversation)
            commit.go("say")
        return
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    _stream(run, text)
    if call is not None:
        blocks.append({"type": "tool_use", "id": f"demo_{run.task}_{number}", "name": call[0], "input": call[1]})
    with run.commit() as commit:
        row = commit.conversation
        Draft.objects.filter(conversation=row).delete()
        calls = [{"id": b["id"], "line": call_line(b["name"], b["input"], row.folder)} for b in blocks[1:]]
        entry = NewEntry(
            kind="assistant",
            model=[{"role": "assistant", "content": blocks}],
            data={"model": MODEL, **({"calls": calls} if calls else {})},
            author=agent_of(conversation=row).pk,
        )
        (placed,) = place_entries(conversation=row, entries=[entry])
        announce_state(conversation=row)
        if call is None:
            commit.complete({"answer": placed.seq})
            return
        start_calls(commit, blocks, placed.seq)
        commit.wait(children_subject(run.task), phase="gather", facts=run.facts)


def gather(run: Run) -> None:
    """Wait for the call; then the next answer."""
    with run.commit() as commit:
        if Task.objects.filter(parent=run.task).exclude(status=TaskStatus.TERMINAL).exists():
            commit.wait(children_subject(run.task))
        else:
            commit.go("say", {"round": int(run.facts.get("round", 1)) + 1})


def _next(run: Run, number: int) -> tuple[str, tuple[str, dict[str, Any]] | None]:
    if number == 1:
        return _LOOK
    if number == 2:
        return _EDIT
    result = Entry.objects.filter(conversation=run.conversation, kind="tool_result").order_by("-seq").first()
    failed = result is not None and any(block.get("is_error") for block in json.loads(result.model)[0]["content"])
    return (_LEFT if failed else _DONE), None


def _stream(run: Run, text: str) -> None:
    words = text.split(" ")
    for count in range(1, len(words)):
        if run.aborting.wait(WORD_SECONDS):
            raise Aborted
        if count % 4:  # stored a few times a second, as a model's answer is
            continue
        kept = store_draft(
            conversation=run.conversation,
            task=run.task,
            lease=run.lease,
            request=f"demo.{run.task}",
            message_id="",
            model=MODEL,
            blocks=[{"type": "text", "text": " ".join(words[:count])}],
        )
        if not kept:
            raise LeaseLost


DEMO_RUN = register_kind(
    Definition(kind=KIND, version=1, first="say", phases={"say": say, "gather": gather}, foreground=True, ended=ended)
)

"""The queue of a conversation and its runs (L6, L7): what is placed when, who answers, and why nobody does."""

import json
from collections.abc import Sequence
from typing import Any

from console.clock import now
from lineage.actions.entries import NewEntry, place_entries
from lineage.actions.settling import live_tasks, set_turn, settle
from lineage.actions.starts import create_task
from lineage.catchup import catch_up_entry, know_tally
from lineage.context import answer_text, parse_messages
from lineage.inboxes import has_reader
from lineage.models import (
    Conversation,
    Entry,
    Submission,
    SubmissionStatus,
    SubmissionType,
    Task,
    TaskOutcome,
    WhenBusy,
)
from lineage.tasks.definitions import find_kind

GENERATION = "generation"
NO_MODEL = (
    "no_model",
    "No model is configured, so nobody here answers. Configure one, or let an agent with a token append the answer.",
)
TALLY = ("tally", "A tally runs no turns. Start a branch from it, or leave it a note.")
STOPPED = ("stopped", "The run was stopped.")


def is_working(conversation: Conversation) -> bool:
    """Whether a run is under way, so that an input has to steer it or to wait (L6)."""
    return conversation.turn_open or live_tasks(conversation.pk).exists()


def advance(*, conversation: Conversation, failed: str = "", fresh: bool = False) -> None:
    """Place what may be placed now, start the next run, and settle. The caller has locked the conversation."""
    while not is_working(conversation):
        batch = _next_batch(conversation)
        if not batch:
            break
        place_and_run(conversation=conversation, submissions=batch)
    settle(conversation=conversation, failed=failed, fresh=fresh, announce=True)


def place_and_run(*, conversation: Conversation, submissions: Sequence[Submission]) -> None:
    """Place these in a conversation without a run; inputs among them begin one together, or say why nobody answers."""
    inputs = [submission for submission in submissions if submission.type == SubmissionType.INPUT]
    refused = cannot_run(conversation) if inputs else None
    if refused == TALLY:
        _leave_unanswered(inputs, *TALLY)
        place_submissions(conversation=conversation, submissions=[s for s in submissions if s not in inputs])
        return
    place_submissions(conversation=conversation, submissions=submissions, catch_up=bool(inputs))
    if not inputs:
        return
    if refused is not None:
        _leave_unanswered(inputs, *refused)
        return
    task = create_task(
        kind=GENERATION, conversation=conversation, input={"submissions": [submission.pk for submission in inputs]}
    )
    Submission.objects.filter(pk__in=[submission.pk for submission in inputs]).update(task=task)


def place_between_rounds(*, conversation: Conversation, task: Task) -> list[Entry]:
    """What waits for the end of a round of tools in the running `task`: writes and steering inputs, in arrival order (L6)."""
    waiting = [s for s in _queued(conversation) if s.type == SubmissionType.WRITE or s.when_busy == WhenBusy.STEER]
    inputs = [s for s in waiting if s.type == SubmissionType.INPUT]
    placed = place_submissions(conversation=conversation, submissions=waiting, catch_up=bool(inputs))
    Submission.objects.filter(pk__in=[submission.pk for submission in inputs]).update(task=task)
    if waiting:
        settle(conversation=conversation, announce=True)
    return placed


def end_run(*, conversation: Conversation, task: Task) -> None:
    """A foreground task ended: its inputs are answered or say why not; then what waited goes on."""
    inputs = list(Submission.objects.filter(conversation=conversation, task=task, status=SubmissionStatus.PLACED))
    result = json.loads(task.result)
    failed = ""
    if isinstance(result, dict) and result.get("unanswered"):
        reason, why = str(result["unanswered"]), str(result.get("why", ""))
        _leave_unanswered(inputs, reason, why)
        failed = why or reason
    elif task.outcome == TaskOutcome.COMPLETED:
        _end_submissions(inputs, SubmissionStatus.DONE)
    elif task.outcome == TaskOutcome.ABORTED:
        _leave_unanswered(inputs, *STOPPED)
    else:
        _leave_unanswered(inputs, "failed", task.error)
        failed = task.error or "The run failed."
    advance(conversation=conversation, failed=failed)


def turn_ended(*, conversation: Conversation) -> None:
    """The turn of an outside agent ended (L8): what no model answered, it did, and what waited is placed."""
    Submission.objects.filter(
        conversation=conversation, status=SubmissionStatus.UNANSWERED, reason=NO_MODEL[0], type=SubmissionType.INPUT
    ).update(status=SubmissionStatus.DONE, reason="", why="")
    set_turn(conversation=conversation, open=False)
    if _queued(conversation):
        advance(conversation=conversation)


def cannot_run(conversation: Conversation) -> tuple[str, str] | None:
    """Why an input here gets no answer from the console: a reason and what to do; none when a run can start."""
    if conversation.pk == conversation.root_id and conversation.root.is_tally:
        return TALLY
    definition = find_kind(GENERATION)
    if definition is None:
        return NO_MODEL
    return definition.cannot_run(conversation) if definition.cannot_run is not None else None


def place_submissions(
    *, conversation: Conversation, submissions: Sequence[Submission], catch_up: bool = False
) -> list[Entry]:
    """Their entries, in order, after one note with the news of the tally when `catch_up` asks for it (L29)."""
    if not submissions:
        return []
    news = catch_up_entry(conversation) if catch_up else None
    entries = ([news.entry] if news is not None else []) + [entry_of(submission) for submission in submissions]
    placed = place_entries(conversation=conversation, entries=entries)
    if news is not None:
        know_tally(conversation=conversation.pk, seq=placed[0].seq, position=news.position)
    moment = now()
    for submission, entry in zip(submissions, placed[-len(submissions) :], strict=True):
        submission.seq, submission.status = entry.seq, SubmissionStatus.PLACED
        if submission.type == SubmissionType.WRITE:
            submission.status, submission.ended = SubmissionStatus.DONE, moment
    Submission.objects.bulk_update(submissions, ["seq", "status", "ended"])
    return placed


def entry_of(submission: Submission) -> NewEntry:
    """The entry that a submission becomes."""
    messages = parse_messages(submission.model)
    return NewEntry(
        kind=submission.kind,
        model=messages,
        data=json.loads(submission.data),
        author=submission.author_id,
        prompt=said_in(messages) if submission.kind == "user" else "",
    )


def said_in(messages: Sequence[dict[str, Any]]) -> str:
    """The text of user messages, for an outline."""
    return answer_text([{**message, "role": "assistant"} for message in messages])


def _next_batch(conversation: Conversation) -> list[Submission]:
    """Writes at once; steering inputs together, else one follow-up: each has its own answer. Mail of a session waits for
    its reader (L24)."""
    queued = _queued(conversation)
    if has_reader(conversation):
        return [s for s in queued if s.type == SubmissionType.WRITE and not hasattr(s, "note")]
    chosen = [s for s in queued if s.type == SubmissionType.INPUT and s.when_busy == WhenBusy.STEER]
    chosen = chosen or [s for s in queued if s.type == SubmissionType.INPUT][:1]
    return [s for s in queued if s.type == SubmissionType.WRITE or s in chosen]


def _queued(conversation: Conversation) -> list[Submission]:
    rows = Submission.objects.filter(conversation=conversation, status=SubmissionStatus.QUEUED)
    return list(rows.select_related("note").order_by("pk"))


def _leave_unanswered(submissions: Sequence[Submission], reason: str, why: str) -> None:
    moment = now()
    for submission in submissions:
        submission.status, submission.reason = SubmissionStatus.UNANSWERED, reason[:40]
        submission.why, submission.ended = why[:300], moment
    Submission.objects.bulk_update(submissions, ["status", "reason", "why", "ended"])


def _end_submissions(submissions: Sequence[Submission], status: SubmissionStatus) -> None:
    moment = now()
    for submission in submissions:
        submission.status, submission.ended = status, moment
    Submission.objects.bulk_update(submissions, ["status", "ended"])

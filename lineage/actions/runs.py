"""The queue of a conversation and its runs (L6, L7): what is placed when, who answers, and why nobody does."""

import json
from collections.abc import Sequence, Set
from typing import Any

from django.db import connection

from console.clock import now
from lineage.actions.attachments import bring_attachments
from lineage.actions.entries import NewEntry, place_in_each
from lineage.actions.settling import live_tasks, set_turn, settle, settle_each
from lineage.actions.starts import create_tasks
from lineage.catchup import catch_up_entries, know_tallies
from lineage.context import answer_text, parse_messages
from lineage.inboxes import readers_among
from lineage.models import (
    Conversation,
    Entry,
    Submission,
    SubmissionStatus,
    SubmissionType,
    Task,
    TaskOutcome,
    TaskStatus,
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
    advance_each(conversations=[conversation], failed=failed, fresh=fresh)


def advance_each(*, conversations: Sequence[Conversation], failed: str = "", fresh: bool = False) -> None:
    """The same for many, each locked, in as many statements as for one."""
    free = list(conversations)
    while free:
        working = _working_among(free)
        batches = _next_batches([row for row in free if row.pk not in working])
        if not batches:
            break
        place_and_run_each(batches=batches)
        free = [conversation for conversation, _ in batches]
    settle_each(conversations=conversations, failed=failed, fresh=fresh, announce=True)


def place_and_run(*, conversation: Conversation, submissions: Sequence[Submission]) -> None:
    """Place these in a conversation without a run; inputs among them begin one together, or say why nobody answers."""
    place_and_run_each(batches=[(conversation, submissions)])


Batch = tuple[Conversation, Sequence[Submission]]


def place_and_run_each(*, batches: Sequence[Batch]) -> None:
    """The same for many conversations, each named once."""
    placed: list[Batch] = []
    catching_up: set[int] = set()
    runs: list[Batch] = []
    refused: dict[tuple[str, str], list[Submission]] = {}
    for conversation, batch in batches:
        inputs = [submission for submission in batch if submission.type == SubmissionType.INPUT]
        refusal = cannot_run(conversation) if inputs else None
        if refusal is not None:
            refused.setdefault(refusal, []).extend(inputs)
        elif inputs:
            runs.append((conversation, inputs))
        if inputs and refusal != TALLY:
            catching_up.add(conversation.pk)
        allowed = [s for s in batch if refusal != TALLY or s not in inputs]
        placed.append((conversation, allowed))
    _place(placed, catching_up)
    for (reason, why), inputs in refused.items():
        _mark_unanswered(inputs, reason, why)
    tasks = create_tasks(
        kind=GENERATION,
        inputs=[
            (conversation, {"submissions": [submission.pk for submission in inputs]}) for conversation, inputs in runs
        ],
    )
    for task, (_, answered) in zip(tasks, runs, strict=True):
        for submission in answered:
            submission.task = task
    _save([submission for _, batch in batches for submission in batch])


def place_between_rounds(*, conversation: Conversation, task: Task) -> list[Entry]:
    """What waits for the end of a round of tools in the running `task`: writes and steering inputs, in arrival order (L6)."""
    queued = _queued([conversation]).get(conversation.pk, [])
    waiting = [s for s in queued if s.type == SubmissionType.WRITE or s.when_busy == WhenBusy.STEER]
    inputs = [s for s in waiting if s.type == SubmissionType.INPUT]
    placed = place_submissions(conversation=conversation, submissions=waiting, catch_up=bool(inputs))
    for submission in inputs:
        submission.task = task
    _save(inputs)
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
    if _queued([conversation]):
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
    (placed,) = _place([(conversation, submissions)], {conversation.pk} if catch_up else set())
    _save(submissions)
    return placed


def _place(batches: Sequence[Batch], catching_up: Set[int]) -> list[list[Entry]]:
    """The same for many conversations, each named once; those in `catching_up` get the news of their tally first. What
    becomes of the submissions is left to the caller to save."""
    waiting = [conversation for conversation, submissions in batches if submissions and conversation.pk in catching_up]
    news = catch_up_entries(waiting)
    entries = [
        [*([news[conversation.pk].entry] if conversation.pk in news else []), *map(entry_of, submissions)]
        for conversation, submissions in batches
    ]
    pairs = [(conversation, new) for (conversation, _), new in zip(batches, entries, strict=True)]
    made = place_in_each(pairs)
    moment = now()
    for (row, submissions), placed in zip(batches, made, strict=True):
        for submission, entry in zip(submissions, placed[len(placed) - len(submissions) :], strict=True):
            submission.seq, submission.status = entry.seq, SubmissionStatus.PLACED
            if submission.type == SubmissionType.WRITE:
                submission.status, submission.ended = SubmissionStatus.DONE, moment
            bring_attachments(conversation=row.pk, data=submission.data, seq=entry.seq)
    know_tallies(
        (row.pk, placed[0].seq, news[row.pk].position)
        for (row, _), placed in zip(batches, made, strict=True)
        if row.pk in news
    )
    return made


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


def _working_among(conversations: Sequence[Conversation]) -> set[int]:
    live = Task.objects.filter(conversation__in=[row.pk for row in conversations if not row.turn_open], foreground=True)
    live = live.exclude(status=TaskStatus.TERMINAL)
    return {row.pk for row in conversations if row.turn_open} | set(live.values_list("conversation_id", flat=True))


def _next_batches(conversations: Sequence[Conversation]) -> list[Batch]:
    """What each may place now, those without anything left out. Writes at once; steering inputs together, else one
    follow-up: each has its own answer. Mail of a session waits for its reader (L24)."""
    queued = _queued(conversations) if conversations else {}
    readers = readers_among(conversations) if queued else set[int]()
    batches: list[Batch] = []
    for conversation in conversations:
        own = queued.get(conversation.pk, [])
        if conversation.pk in readers:
            batch = [s for s in own if s.type == SubmissionType.WRITE and not hasattr(s, "note")]
        else:
            inputs = [s for s in own if s.type == SubmissionType.INPUT]
            chosen = [s for s in inputs if s.when_busy == WhenBusy.STEER] or inputs[:1]
            batch = [s for s in own if s.type == SubmissionType.WRITE or s in chosen]
        if batch:
            batches.append((conversation, batch))
    return batches


def _queued(conversations: Sequence[Conversation]) -> dict[int, list[Submission]]:
    found: dict[int, list[Submission]] = {}
    rows = Submission.objects.filter(conversation__in=conversations, status=SubmissionStatus.QUEUED)
    for row in rows.select_related("note").order_by("pk"):
        found.setdefault(row.conversation_id, []).append(row)
    return found


def _leave_unanswered(submissions: Sequence[Submission], reason: str, why: str) -> None:
    _mark_unanswered(submissions, reason, why)
    _save(submissions)


def _mark_unanswered(submissions: Sequence[Submission], reason: str, why: str) -> None:
    moment = now()
    for submission in submissions:
        submission.status, submission.reason = SubmissionStatus.UNANSWERED, reason[:40]
        submission.why, submission.ended = why[:300], moment


def _end_submissions(submissions: Sequence[Submission], status: SubmissionStatus) -> None:
    moment = now()
    for submission in submissions:
        submission.status, submission.ended = status, moment
    _save(submissions)


_SAVE = """
UPDATE lineage_submission s SET status = n.status, reason = n.reason, why = n.why, seq = n.seq, task_id = n.task, ended = n.ended
FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::int[], %s::bigint[], %s::timestamptz[])
AS n(id, status, reason, why, seq, task, ended) WHERE s.id = n.id
"""


def _save(submissions: Sequence[Submission]) -> None:
    """What becomes of submissions, in one statement; their conversations are locked."""
    if not submissions:
        return
    columns: list[list[Any]] = [
        [s.pk for s in submissions],
        [str(s.status) for s in submissions],
        [s.reason for s in submissions],
        [s.why for s in submissions],
        [s.seq for s in submissions],
        [s.task_id for s in submissions],
        [s.ended for s in submissions],
    ]
    with connection.cursor() as cursor:
        cursor.execute(_SAVE, columns)

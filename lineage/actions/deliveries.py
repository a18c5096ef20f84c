"""Delivering that a conversation finished (L22, L23), to many callers in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from console.clock import now
from console.json_text import dumped
from console.models import Request, Touched
from lineage.actions.copying import create_rows
from lineage.actions.entries import place_in_each
from lineage.actions.runs import TALLY, advance_each, cannot_run, entry_of, place_and_run_each
from lineage.actions.settling import settle_each
from lineage.actions.states import announce_states
from lineage.inboxes import readers_among
from lineage.models import (
    Conversation,
    Delivered,
    Kind,
    Note,
    NoteSource,
    Submission,
    SubmissionStatus,
    SubmissionType,
    Task,
    TaskStatus,
    WhenBusy,
)

FINISHED = 1500  # characters of an answer that a finish tells; the ellipsis comes on top
NO_ANSWER = "It gave no answer."


@dataclass(frozen=True, kw_only=True)
class Finish:
    """What is told, fixed when the target was found idle. `answer` is the target's entry, 0 when it gave none."""

    task: int
    caller: int
    target: int
    title: str
    text: str
    answer: int
    wake: bool

    @property
    def key(self) -> str:
        """The delivery's request id in the caller: one per answer, whatever `wake` says (L23)."""
        return f"notify:{self.target}:answer:{self.answer}" if self.answer else f"notify:{self.target}:task:{self.task}"

    @property
    def message(self) -> str:
        """What the caller's model reads."""
        title = f": {self.title}" if self.title else ""
        said = f"It last said:\n{self.text}" if self.answer else self.text
        return f"#{self.target} finished{title}\n\n{said}"


def deliver_finishes(*, finishes: Sequence[Finish], callers: dict[int, Conversation]) -> None:
    """Deliver each once. The caller of this action has locked the callers and the notify tasks; done and delivery are one
    transaction."""
    known = Request.objects.filter(
        receiver__in=[f"conversation:{finish.caller}" for finish in finishes],
        request_id__in=[finish.key for finish in finishes],
        actor=None,
    )
    told = set(known.values_list("receiver", "request_id"))
    new: list[Finish] = []
    for finish in finishes:
        if (f"conversation:{finish.caller}", finish.key) not in told:
            told.add((f"conversation:{finish.caller}", finish.key))
            new.append(finish)
    _put_in(new, callers)
    Touched.objects.bulk_create(Touched(conversation=pk) for pk in sorted({finish.target for finish in finishes}))
    moment = now()
    create_rows(
        [Request(receiver=f"conversation:{f.caller}", request_id=f.key, result="true", created=moment) for f in new]
    )
    Delivered.objects.bulk_create(
        [
            Delivered(caller_id=caller, target_id=target, answer=answer)
            for (caller, target), answer in {(f.caller, f.target): f.answer for f in finishes}.items()
        ],
        update_conflicts=True,
        unique_fields=["caller", "target"],
        update_fields=["answer"],
    )


def _put_in(finishes: Sequence[Finish], callers: dict[int, Conversation]) -> None:
    """What comes to idle conversations is placed at once; mail waits for its reader; the rest takes its turn in the queue."""
    if not finishes:
        return
    told = [callers[pk] for pk in dict.fromkeys(finish.caller for finish in finishes)]
    readers = readers_among(told)
    new = [_submission(finish, callers[finish.caller], readers) for finish in finishes]
    busy = _busy_among([row.pk for row in told if row.pk not in readers])
    busy |= {row.pk for row in told if row.turn_open}
    waking = {s.conversation_id for s in new if s.type == SubmissionType.INPUT}
    _place_at_once([s for s in new if s.conversation_id not in readers | busy | waking])
    create_rows(new)
    create_rows(
        [
            Note(
                submission=submission,
                source=NoteSource.FINISHED,
                sender_id=finish.target,
                title=finish.title,
                text=finish.text,
            )
            for submission, finish in zip(new, finishes, strict=True)
        ]
    )
    announce_states(conversations=[row for row in told if row.pk in readers])
    _start_at_once([s for s in new if s.conversation_id in waking - readers - busy])
    advance_each(conversations=[row for row in told if row.pk in busy - readers])


def _submission(finish: Finish, caller: Conversation, readers: set[int]) -> Submission:
    """`wake` starts the caller's next run; where nobody here runs it, it is a note like any other."""
    wakes = finish.wake and cannot_run(caller) != TALLY and (caller.kind != Kind.SESSION or caller.pk in readers)
    data: dict[str, Any] = {"from": finish.target, "title": finish.title, "text": finish.text, "answer": finish.answer}
    return Submission(
        conversation=caller,
        type=SubmissionType.INPUT if wakes else SubmissionType.WRITE,
        status=SubmissionStatus.QUEUED,
        when_busy=WhenBusy.FOLLOW_UP,
        kind="lineage.finished" if wakes else "lineage.note",
        model=dumped([{"role": "user", "content": finish.message}]),
        data=dumped(data if wakes else {**data, "source": str(NoteSource.FINISHED)}),
        created=now(),
    )


def _busy_among(callers: Sequence[int]) -> set[int]:
    """Those with a run or with something queued: there arrival order has to be kept."""
    live = Task.objects.filter(conversation__in=callers, foreground=True).exclude(status=TaskStatus.TERMINAL)
    queued = Submission.objects.filter(conversation__in=callers, status=SubmissionStatus.QUEUED)
    return {*live.values_list("conversation_id", flat=True), *queued.values_list("conversation_id", flat=True)}


def _start_at_once(quick: Sequence[Submission]) -> None:
    """The runs that these begin in idle conversations. Where several came together, each has an answer of its own (L6)."""
    found = _of_each(quick)
    alone = [(group[0].conversation, group) for group in found if len(group) == 1]
    place_and_run_each(batches=alone)
    settle_each(conversations=[conversation for conversation, _ in alone])
    advance_each(conversations=[group[0].conversation for group in found if len(group) > 1])


def _place_at_once(quick: Sequence[Submission]) -> None:
    """The entries of these, not yet stored, in as many statements as for one."""
    found = _of_each(quick)
    pairs = [(group[0].conversation, [entry_of(submission) for submission in group]) for group in found]
    moment = now()
    for group, entries in zip(found, place_in_each(pairs), strict=True):
        for submission, entry in zip(group, entries, strict=True):
            submission.seq, submission.status, submission.ended = entry.seq, SubmissionStatus.DONE, moment


def _of_each(submissions: Sequence[Submission]) -> list[list[Submission]]:
    found: dict[int, list[Submission]] = {}
    for submission in submissions:
        found.setdefault(submission.conversation_id, []).append(submission)
    return list(found.values())

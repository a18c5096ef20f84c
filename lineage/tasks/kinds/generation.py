"""*generation*: a run from its input to its answer (A5). Each round asks the model; what it calls are tasks of their own, and
the next round begins when the last of them has ended."""

import time
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from lineage.actions.agents import agent_of
from lineage.actions.drafts import place_partial, store_draft
from lineage.actions.entries import NewEntry, NewUsage, place_entries
from lineage.actions.model_requests import record_request
from lineage.actions.runs import GENERATION as KIND
from lineage.actions.runs import NO_MODEL, end_run, place_between_rounds
from lineage.actions.starts import create_task
from lineage.actions.states import announce_state
from lineage.actions.wakes import children_subject
from lineage.agent.history import tails_of
from lineage.agent.inputs import inputs_of
from lineage.agent.prices import cost_micros
from lineage.agent.provider import Answer, ProviderFailed, Stopped, model_for, read_answer
from lineage.agent.request import MAX_TOKENS, Assembled, RequestTooLong, assemble
from lineage.models import Conversation, Draft, ModelRequest, Outcome, Task, TaskOutcome, TaskStatus
from lineage.tasks.definitions import Definition, register_kind
from lineage.tasks.kinds.summarise import summarise_later
from lineage.tasks.running import Aborted, Commit, LeaseLost, Run
from lineage.transcripts.tools import call_line

RETRIES = 3
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0

ROUNDS = 500
"""Rounds of one run: a long day's work. A model that calls the same tool for ever stops here."""

STORE_S = 0.3
"""Between two storings of a draft: what a reader takes for a stream, and what a crash may cost."""

WHY_CHARACTERS = 4_000  # of the prose before a call, which an approval shows
_CRASHED = "The worker that wrote this ended before it was done; the model was asked again."


def ask(run: Run) -> None:
    """One request and its answer. What an earlier try left behind is kept first, as an answer that broke off."""
    if run.aborting.is_set():
        raise Aborted
    if _keep_what_a_crash_left(run):
        return
    conversation = Conversation.objects.select_related("root", "agent").get(pk=run.conversation)
    model = model_for(conversation.model)
    if model is None:
        with run.commit() as commit:
            _fail(commit, *NO_MODEL)
        return
    name = f"{run.task}.{run.facts.get('round', 1)}.{run.facts.get('retries', 0) + run.attempts}"
    request = _assembled(run, conversation, model, name)
    if request is None:
        return
    answer = Answer()
    stored = _Storing(run, name, answer)
    try:
        read_answer(request.body, into=answer, stopped=run.aborting.is_set, seen=stored.seen)
    except Stopped:
        stored.store()
        raise Aborted from None
    except ProviderFailed as failure:
        stored.store()
        _rest_or_fail(run, failure)
    else:
        _take(run, name, answer)


def gather(run: Run) -> None:
    """Wait for the calls of the round; then what came meanwhile is placed, and the model is asked again."""
    with run.commit() as commit:
        if Task.objects.filter(parent=run.task).exclude(status=TaskStatus.TERMINAL).exists():
            commit.wait(children_subject(run.task))
            return
        place_between_rounds(conversation=commit.conversation, task=commit.task)
        round_ = int(run.facts.get("round", 1)) + 1
        if round_ > ROUNDS:
            _fail(
                commit,
                "too_many_rounds",
                f"The run used tools {ROUNDS} times without coming to an end. Say what is missing, and go on.",
            )
            return
        commit.go("ask", {"round": round_})


def ended(task: Task, conversation: Conversation) -> None:
    """Whatever its end: what was being written becomes an entry, the inputs are told, and what waited goes on."""
    stopped = task.outcome == TaskOutcome.ABORTED
    place_partial(
        conversation=conversation,
        outcome=Outcome.ABORTED if stopped else Outcome.FAILED,
        why="Stopped by a person." if stopped else task.error,
    )
    end_run(conversation=conversation, task=task)
    if task.outcome == TaskOutcome.COMPLETED:
        summarise_later(conversation=conversation)


def cannot_run(conversation: Conversation) -> tuple[str, str] | None:
    """Without a model nobody here answers (A5)."""
    return NO_MODEL if model_for(conversation.model) is None else None


class _Storing:
    """Keeps the draft while an answer comes: at once when it begins, then a few times a second."""

    def __init__(self, run: Run, name: str, answer: Answer) -> None:
        self._run, self._name, self._answer = run, name, answer
        self._next = 0.0
        self._kept: list[dict[str, Any]] = []

    def seen(self) -> None:
        if self._answer.blocks and time.monotonic() >= self._next:
            self.store()

    def store(self) -> None:
        if self._answer.blocks == self._kept:
            return
        self._kept = [dict(block) for block in self._answer.blocks]
        kept = store_draft(
            conversation=self._run.conversation,
            task=self._run.task,
            lease=self._run.lease,
            request=self._name,
            message_id=self._answer.message_id,
            model=self._answer.model,
            blocks=self._kept,
        )
        if not kept:
            raise LeaseLost
        self._next = time.monotonic() + STORE_S


def _keep_what_a_crash_left(run: Run) -> bool:
    """Whether a draft of this task was there: it is an entry now, and this phase runs again at once."""
    if not _has_draft(run):
        return False
    with run.commit() as commit:
        place_partial(conversation=commit.conversation, outcome=Outcome.ABORTED, why=_CRASHED)
        announce_state(conversation=commit.conversation)
        commit.go("ask")
    return True


def _has_draft(run: Run) -> bool:
    return Draft.objects.filter(conversation=run.conversation, task=run.task).exists()


def _assembled(run: Run, conversation: Conversation, model: str, name: str) -> Assembled | None:
    """The request, recorded; none when it was too long and the run has ended with that."""
    agent = conversation.agent.name if conversation.agent is not None else "an agent"
    inputs = inputs_of(conversation, model=model, name=agent)
    try:
        request = assemble(inputs, tails_of(conversation))
    except RequestTooLong as refusal:
        record_request(conversation=conversation, name=name, at=conversation.head, model=model, ledger=refusal.ledger)
        with run.commit() as commit:
            _fail(commit, "request_too_long", str(refusal))
        return None
    record_request(
        conversation=conversation,
        name=name,
        at=conversation.head,
        model=model,
        ledger=request.ledger,
        receipt=request.receipt,
        body=request.body,
    )
    return request


def _take(run: Run, name: str, answer: Answer) -> None:
    """A whole answer: one entry, its usage once, and a task for each call."""
    refused = answer.stop == "refusal"
    with run.commit() as commit:
        conversation = commit.conversation
        agent = agent_of(conversation=conversation)
        Draft.objects.filter(conversation=conversation).delete()
        (entry,) = place_entries(
            conversation=conversation, entries=[_entry(conversation, answer, agent.pk, name, refused)]
        )
        ModelRequest.objects.filter(conversation=conversation, name=name).update(seq=entry.seq)
        announce_state(conversation=conversation)
        if refused:
            _fail(commit, "refused", "The model declined to answer this. Ask in another way, or leave something out.")
        elif not answer.calls:
            commit.complete({"answer": entry.seq, "stop": answer.stop})
        else:
            start_calls(commit, answer.blocks, entry.seq)
            commit.wait(children_subject(run.task), phase="gather", facts={**run.facts, "retries": 0})


def start_calls(commit: Commit, blocks: Sequence[dict[str, Any]], seq: int) -> None:
    """A task for each call of the answer that is the entry `seq`; the prose before a call says why."""
    why = ""
    for number, block in enumerate(blocks):
        if block.get("type") == "text" and block["text"].strip():
            why = block["text"].strip()
        elif block.get("type") == "tool_use":
            create_task(
                kind="tool",
                conversation=commit.conversation,
                parent=commit.task,
                input={
                    "call": block["id"],
                    "name": block["name"],
                    "input": block["input"],
                    "seq": seq,
                    "number": number,
                    "why": why[-WHY_CHARACTERS:],
                },
            )


def _entry(conversation: Conversation, answer: Answer, author: int, name: str, refused: bool) -> NewEntry:
    data: dict[str, Any] = {"stop": answer.stop, "model": answer.model, "request": name}
    calls = [
        {"id": block["id"], "line": call_line(block["name"], block["input"], conversation.folder)}
        for block in answer.calls
    ]
    if calls:
        data["calls"] = calls
    if answer.stop == "max_tokens":
        data["why"] = f"The answer ended at its limit of {MAX_TOKENS} tokens, so its end is missing."
    if not answer.holds_anything:
        data["why"] = "The model answered nothing."
    return NewEntry(
        kind="assistant",
        model=[{"role": "assistant", "content": answer.blocks}] if answer.holds_anything else None,
        data=data,
        author=author,
        message_id=answer.message_id,
        outcome=Outcome.FAILED if refused else "",
        usage=NewUsage(
            message_id=answer.message_id or name,
            model=answer.model,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            cache_read_tokens=answer.cache_read_tokens,
            cache_write_tokens=answer.cache_write_tokens,
            cost_micros=cost_micros(answer, settings.MODEL_PRICES),
        ),
    )


def _rest_or_fail(run: Run, failure: ProviderFailed) -> None:
    """Try again later, without holding a worker, as often as allowed; what came of the answer stays to be read."""
    retries = int(run.facts.get("retries", 0)) + 1
    with run.commit() as commit:
        if not failure.again or retries > RETRIES:
            _fail(commit, "failed", str(failure))
            return
        place_partial(conversation=commit.conversation, outcome=Outcome.FAILED, why=str(failure))
        announce_state(conversation=commit.conversation)
        pause = min(LONGEST_PAUSE_S, max(failure.after or 0.0, FIRST_PAUSE_S * 2 ** (retries - 1)))
        commit.retry(
            after_s=pause,
            why=f"{failure} Trying again in {pause:.0f} s ({retries} of {RETRIES}).",
            facts={**run.facts, "retries": retries},
        )


def _fail(commit: Commit, reason: str, why: str) -> None:
    commit.fail(why, {"unanswered": reason, "why": why})


GENERATION = register_kind(
    Definition(
        kind=KIND,
        version=1,
        first="ask",
        phases={"ask": ask, "gather": gather},
        foreground=True,
        ended=ended,
        cannot_run=cannot_run,
    )
)

"""Running turns (A5, A6): from an input to its answer, with a real server as the model."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from console.access import Who
from console.clock import moved
from lineage.actions.branches import start_branch
from lineage.actions.drafts import store_draft
from lineage.actions.entries import NewEntry, lock_conversation, place_entries
from lineage.actions.memory import apply_memory_ops
from lineage.actions.notes import leave_note, receipt_json
from lineage.actions.stops import stop_conversation
from lineage.actions.submissions import submit
from lineage.agent import provider, request
from lineage.loading import load_context
from lineage.models import (
    Conversation,
    Draft,
    Entry,
    LoadReceipt,
    ModelRequest,
    State,
    Submission,
    SubmissionType,
    Task,
    TaskStatus,
    Usage,
    WhenBusy,
)
from lineage.receipts import notes_of
from lineage.state import conversation_state, own_usage
from lineage.tasks.claiming import LEASE, claim_one
from lineage.tasks.kinds import generation
from lineage.tasks.leases import look_at_held
from lineage.tasks.working import run_claim
from tests.factories import make_person, make_root
from tests.lineage.agent.fakemodel import FakeModel, Fault
from tests.lineage.working import work
from tests.replay import replaying

pytestmark = pytest.mark.django_db


@pytest.fixture
def who() -> Who:
    return make_person()


@pytest.fixture
def conversation(who: Who, tmp_path: Path) -> Conversation:
    """A root with a working folder."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    return make_root(who, folder=str(tmp_path)).conversation


def ask(who: Who, conversation: Conversation, text: str = "What is in a.txt?", **more: Any) -> Submission:
    found = submit(who=who, conversation=conversation.pk, type=SubmissionType.INPUT, content=text, **more)
    return Submission.objects.get(pk=found["id"])


def kinds(conversation: Conversation) -> list[str]:
    return [
        f"{entry.kind} {entry.outcome}".strip()
        for entry in Entry.objects.filter(conversation=conversation).order_by("seq")
    ]


def texts(conversation: Conversation) -> list[str]:
    found = []
    for entry in Entry.objects.filter(conversation=conversation).exclude(model="").order_by("seq"):
        for message in json.loads(entry.model):
            for block in [message["content"]] if isinstance(message["content"], str) else message["content"]:
                found.append(
                    block if isinstance(block, str) else block.get("text") or block.get("content") or block["name"]
                )
    return found


def test_an_input_is_answered(model: FakeModel, who: Who, conversation: Conversation) -> None:
    model.says("It has two lines.")
    with replaying(f"conversation:{conversation.pk}"):
        asked = ask(who, conversation)
        work()
    conversation.refresh_from_db()
    asked.refresh_from_db()
    assert texts(conversation) == ["What is in a.txt?", "It has two lines."]
    assert (asked.status, conversation.state) == ("done", State.IDLE)
    answer = Entry.objects.get(conversation=conversation, kind="assistant")
    assert answer.author is not None
    assert answer.author.kind == "agent"
    assert not Draft.objects.exists()


def test_usage_is_stored_once_with_its_cost(model: FakeModel, who: Who, conversation: Conversation) -> None:
    """A6."""
    model.says("It has two lines.")
    ask(who, conversation)
    work()
    (usage,) = Usage.objects.filter(conversation=conversation)
    assert usage.message_id.startswith("msg_")
    assert usage.cost_micros == 3 * usage.input_tokens + 15 * usage.output_tokens > 0
    assert own_usage(conversation.pk)["cost_micros"] == usage.cost_micros


def test_what_the_model_was_sent_is_kept(
    model: FakeModel, who: Who, conversation: Conversation, tmp_path: Path
) -> None:
    """A1, L28."""
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    model.says("Yes.")
    ask(who, conversation)
    work()
    (row,) = ModelRequest.objects.filter(conversation=conversation)
    ledger, receipt = json.loads(row.ledger), json.loads(row.receipt)
    assert ledger["total"] == len(model.bodies[0])
    assert ledger["agents"] > len("Be kind.")
    assert receipt == {"memories": [], "agents_characters": 8, "agents_total": 8, "attachments": {}}
    assert row.seq == Entry.objects.get(conversation=conversation, kind="assistant").seq
    assert LoadReceipt.objects.get(conversation=conversation).agents_md == 8
    sent = model.requests()[0]
    assert [tool["name"] for tool in sent["tools"]][:5] == [
        "read_file",
        "list_dir",
        "search",
        "edit_file",
        "run_command",
    ]
    assert "Be kind." in sent["system"][-1]["text"]


def test_a_receipt_names_the_memories_that_were_carried(model: FakeModel, who: Who, conversation: Conversation) -> None:
    """L17, L28: a branch of a root with memories begins with their index."""
    said = {"kind": "fact", "line": "Tax is rounded per line", "body": "By law."}
    apply_memory_ops(who=who, root=conversation.pk, ops=[{"op": "add", "slug": "rounding", **said}])
    model.says("Yes.")
    ask(who, conversation, "What is known?")
    work()
    branch = start_branch(who=who, source=conversation.pk, prompt="Go on from there.")
    work()
    assert json.loads(LoadReceipt.objects.get(conversation=conversation).memories) == []
    assert json.loads(LoadReceipt.objects.get(conversation=branch).memories) == ["rounding"]


def test_the_sender_sees_which_request_carried_a_note(model: FakeModel, who: Who, conversation: Conversation) -> None:
    """L21: computed from the body as sent, so a note that a head put out of context stays unread."""
    model.says("Yes.")
    ask(who, conversation)
    work()
    sender = Conversation.objects.get(pk=start_branch(who=who, source=conversation.pk, prompt="Look around."))
    work()
    leave_note(who=who, to=conversation.pk, sender=sender.pk, text="Before the head.")
    with transaction.atomic():
        row = lock_conversation(conversation.pk)
        place_entries(conversation=row, entries=[NewEntry(kind="reset", head=True)])
    leave_note(who=who, to=conversation.pk, sender=sender.pk, text="Mind the cents.")
    ask(who, conversation, "And now?")
    work()
    name = ModelRequest.objects.filter(conversation=conversation).latest("pk").name
    receipts = {note.text: receipt_json(note) for note in notes_of(sender, "sent")}
    assert receipts["Mind the cents."]["status"] == "read"
    assert receipts["Mind the cents."]["included"] == name
    assert receipts["Before the head."]["status"] == "placed"


def test_tools_are_called_and_their_results_go_back(model: FakeModel, who: Who, conversation: Conversation) -> None:
    model.rules(
        {
            "when": {"turn": 1},
            "respond": {
                "content": "I will look.",
                "tool_calls": [
                    {"name": "read_file", "arguments": {"path": "a.txt"}},
                    {"name": "read_file", "arguments": {"path": "../secret"}},
                    {"name": "no_such_tool", "arguments": {}},
                    {"name": "read_file", "arguments": {"start": 1}},
                ],
            },
        },
        {"respond": {"content": "Done."}},
    )
    ask(who, conversation)
    work()
    assert kinds(conversation) == ["user", "assistant", *["tool_result"] * 4, "assistant"]
    results = model.requests()[1]["messages"][-1]["content"]
    assert results[0]["content"].startswith("one\ntwo\n")
    assert [block.get("is_error", False) for block in results] == [False, True, True, True]
    assert "outside the working folder" in results[1]["content"]
    assert "no tool no_such_tool" in results[2]["content"]
    assert "arguments of read_file do not fit" in results[3]["content"]
    assert conversation_state(conversation)["approvals"] == []


def test_a_broken_stream_is_kept_and_asked_again(model: FakeModel, who: Who, conversation: Conversation) -> None:
    model.says("one two three four")
    model.faults.append(Fault(break_after=4))
    ask(who, conversation)
    work()
    task = Task.objects.get(conversation=conversation, kind="generation")
    assert task.status == TaskStatus.PENDING
    assert "Trying again in 2 s (1 of 3)" in task.error
    with moved(timedelta(seconds=2.1)):
        work()
    assert kinds(conversation) == ["user", "assistant failed", "assistant"]
    assert texts(conversation) == ["What is in a.txt?", "one two", "one two three four"]
    conversation.refresh_from_db()
    assert len(load_context(conversation).messages) == 2  # the model never reads the broken one


@pytest.mark.parametrize(
    ("fault", "pauses"),
    [(Fault(status=529), [2, 4, 8]), (Fault(status=429, headers=(("retry-after", "90"),)), [60, 60, 60])],
)
def test_three_retries_with_pauses(
    model: FakeModel, who: Who, conversation: Conversation, fault: Fault, pauses: list[int]
) -> None:
    model.faults.extend([fault] * 4)
    asked = ask(who, conversation)
    later = timedelta()
    for number, pause in enumerate(pauses, 1):
        with moved(later):
            work()
            assert Task.objects.get(conversation=conversation).error.endswith(
                f"Trying again in {pause} s ({number} of 3)."
            )
        later += timedelta(seconds=pause - 0.5)
        with moved(later):
            assert work() == 0
        later += timedelta(seconds=0.6)
    with moved(later):
        work()
    asked.refresh_from_db()
    conversation.refresh_from_db()
    assert len(model.bodies) == 4
    assert (asked.status, asked.reason) == ("unanswered", "failed")
    assert conversation.state == State.FAILED
    assert f"answered {fault.status}" in conversation.state_why


def test_what_will_not_get_better_is_not_tried_again(model: FakeModel, who: Who, conversation: Conversation) -> None:
    model.faults.append(Fault(status=401))
    asked = ask(who, conversation)
    work()
    asked.refresh_from_db()
    assert (asked.reason, len(model.bodies)) == ("failed", 1)


def test_a_refusal_ends_the_run_with_its_name(model: FakeModel, who: Who, conversation: Conversation) -> None:
    model.says("I cannot do that")
    model.faults.append(Fault(replace=(('"end_turn"', '"refusal"'),)))
    asked = ask(who, conversation)
    work()
    asked.refresh_from_db()
    assert asked.reason == "refused"
    assert kinds(conversation) == ["user", "assistant failed"]
    assert Usage.objects.filter(conversation=conversation).count() == 1


def test_without_a_model_it_says_so(settings: Settings, who: Who, conversation: Conversation) -> None:
    settings.MODELS = []
    asked = ask(who, conversation)
    assert (asked.status, asked.reason) == ("unanswered", "no_model")
    assert work() == 0


def test_a_request_that_is_too_long_is_said_with_its_ledger(
    model: FakeModel, who: Who, conversation: Conversation
) -> None:
    asked = ask(who, conversation, "x" * (request.REQUEST_CAP + 1))
    work()
    asked.refresh_from_db()
    assert asked.reason == "request_too_long"
    row = ModelRequest.objects.get(conversation=conversation)
    assert json.loads(row.ledger)["total"] > request.REQUEST_CAP
    assert model.bodies == []


def _hold(model: FakeModel, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something while the model stands still in the middle of its answer."""
    model.faults.append(Fault(hold_after=4))
    real = provider._take
    seen = 0

    def take(answer: provider.Answer, event: Any) -> None:
        nonlocal seen
        real(answer, event)
        seen += 1
        if seen == 4:
            act()

    monkeypatch.setattr(provider, "_take", take)


def test_a_stop_keeps_what_came(
    model: FakeModel, who: Who, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.says("one two three four")
    asked = ask(who, conversation)
    claim = claim_one()

    def stop() -> None:
        stop_conversation(who=who, conversation=conversation.pk)
        look_at_held(renew=False)  # what a worker's lease thread does each second

    _hold(model, monkeypatch, stop)
    run_claim(claim)
    work()
    asked.refresh_from_db()
    conversation.refresh_from_db()
    assert kinds(conversation) == ["user", "assistant aborted"]
    assert texts(conversation)[-1] == "one two"
    assert (asked.status, asked.reason, conversation.state) == ("unanswered", "stopped", State.IDLE)


def test_a_draft_is_shown_while_it_grows(
    model: FakeModel, who: Who, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "STORE_S", 0.0)
    model.says("one two three four")
    ask(who, conversation)
    shown: list[str] = []

    def storing(**given: Any) -> bool:
        kept = store_draft(**given)
        draft = conversation_state(Conversation.objects.get(pk=conversation.pk))["draft"]
        shown.append(draft["text"])
        return kept

    monkeypatch.setattr("lineage.tasks.kinds.generation.store_draft", storing)
    work()
    assert shown == ["", "one", "one two", "one two three", "one two three four"]
    assert conversation_state(conversation)["draft"] is None


def test_after_a_crash_the_draft_is_an_aborted_entry_and_the_run_goes_on(
    model: FakeModel, who: Who, conversation: Conversation
) -> None:
    model.says("whole answer")
    ask(who, conversation)
    claim = claim_one()
    (task,) = claim.tasks
    store_draft(
        conversation=conversation.pk,
        task=task.pk,
        lease=claim.lease,
        request="r",
        message_id="msg_1",
        model="m",
        blocks=[{"type": "text", "text": "half an"}, {"type": "tool_use", "id": "c", "name": "x", "input": {}}],
    )
    with moved(LEASE * 2):  # its worker is gone
        work()
    assert kinds(conversation) == ["user", "assistant aborted", "assistant"]
    assert texts(conversation) == ["What is in a.txt?", "half an", "whole answer"]
    assert not Draft.objects.exists()


def test_a_worker_that_lost_its_lease_writes_no_draft(model: FakeModel, who: Who, conversation: Conversation) -> None:
    ask(who, conversation)
    claim = claim_one()
    with moved(LEASE * 2):
        claim_one(claim.tasks[0].pk)
    kept = store_draft(
        conversation=conversation.pk,
        task=claim.tasks[0].pk,
        lease=claim.lease,
        request="r",
        message_id="",
        model="",
        blocks=[{"type": "text", "text": "late"}],
    )
    assert not kept
    assert not Draft.objects.exists()


def test_steering_is_placed_after_the_round(model: FakeModel, who: Who, conversation: Conversation) -> None:
    """L6."""
    model.rules(
        {"when": {"turn": 1}, "respond": {"tool_calls": [{"name": "list_dir", "arguments": {}}]}},
        {"respond": {"content": "As you say."}},
    )
    ask(who, conversation)
    steer = ask(who, conversation, "Use tabs", when_busy=WhenBusy.STEER)
    after = ask(who, conversation, "And then?", when_busy=WhenBusy.FOLLOW_UP)
    work()
    steer.refresh_from_db()
    after.refresh_from_db()
    assert kinds(conversation) == ["user", "assistant", "tool_result", "user", "assistant", "user", "assistant"]
    assert model.requests()[1]["messages"][-1]["content"][-1]["text"] == "Use tabs"
    assert (steer.status, after.status) == ("done", "done")


def test_a_model_that_never_ends_is_stopped(
    model: FakeModel, who: Who, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "ROUNDS", 3)
    model.rules({"respond": {"tool_calls": [{"name": "list_dir", "arguments": {}}]}})
    asked = ask(who, conversation)
    work()
    asked.refresh_from_db()
    assert asked.reason == "too_many_rounds"
    assert len(model.bodies) == 3


def test_no_transaction_is_open_while_the_model_is_asked(
    model: FakeModel, who: Who, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R5."""
    depth: list[int] = []
    real = provider._take

    def take(answer: provider.Answer, event: Any) -> None:
        depth.append(len(connection.savepoint_ids))
        real(answer, event)

    monkeypatch.setattr(provider, "_take", take)
    model.says("Hello")
    ask(who, conversation)
    outside = len(connection.savepoint_ids)
    work()
    assert set(depth) == {outside}

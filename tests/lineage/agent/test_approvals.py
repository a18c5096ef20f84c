"""Approvals (A3): raised with a call, decided once, ended with it; and what happens to the call then."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from console.access import Who
from console.clock import moved
from console.errors import Conflict, Forbidden, Invalid, NotFound
from console.models import Role
from lineage.actions.approvals import LIFE, approve_always, decide_approval, end_rule, expire_approvals
from lineage.actions.members import set_member
from lineage.actions.stops import stop_conversation
from lineage.agent.folder.commands import Ran, run_command
from lineage.agent.rules import fits as fits_rule
from lineage.models import Approval, Conversation, Entry, Rule, State, Task
from lineage.tasks.claiming import LEASE, claim_one
from lineage.tasks.kinds.tool import DECLINED, INTERRUPTED, STOPPED
from lineage.tasks.leases import look_at_held
from lineage.tasks.working import run_claim
from tests.factories import make_person, make_root
from tests.lineage.agent.fakemodel import FakeModel
from tests.lineage.agent.test_turns import ask, kinds
from tests.lineage.working import work
from tests.replay import replaying

pytestmark = pytest.mark.django_db

EDIT = {"name": "edit_file", "arguments": {"path": "a.txt", "old_string": "two", "new_string": "2"}}


@pytest.fixture
def mira() -> Who:
    """An owner."""
    return make_person("mira")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    return tmp_path


@pytest.fixture
def conversation(mira: Who, folder: Path) -> Conversation:
    return make_root(mira, folder=str(folder)).conversation


def calls(model: FakeModel, *tool_calls: dict[str, Any], answer: str = "Done.") -> None:
    """The model calls these at once, then answers."""
    model.rules(
        {"when": {"turn": 1}, "respond": {"content": "I need this.", "tool_calls": list(tool_calls)}},
        {"respond": {"content": answer}},
    )


def command(line: str) -> dict[str, Any]:
    return {"name": "run_command", "arguments": {"command": line}}


def waiting(conversation: Conversation) -> Approval:
    return Approval.objects.get(conversation=conversation, status="waiting")


def result(conversation: Conversation, number: int = 0) -> dict[str, Any]:
    entries = Entry.objects.filter(conversation=conversation, kind="tool_result").order_by("seq")
    block: dict[str, Any] = json.loads(entries[number].model)[0]["content"][0]
    return block


def test_an_edit_waits_with_its_diff(model: FakeModel, mira: Who, conversation: Conversation, folder: Path) -> None:
    calls(model, EDIT)
    ask(mira, conversation)
    with replaying(f"conversation:{conversation.pk}"):
        work()
    approval = waiting(conversation)
    preview = json.loads(approval.preview)
    conversation.refresh_from_db()
    assert conversation.state == State.APPROVAL
    assert "-two\n+2" in preview["diff"]
    assert (approval.why, approval.line) == ("I need this.", "edit_file a.txt +1 −1")
    assert approval.seq == Entry.objects.get(conversation=conversation, kind="assistant").seq
    assert (folder / "a.txt").read_text() == "one\ntwo\n"
    assert Task.objects.get(kind="tool").lease is None


def test_an_approved_edit_happens_and_the_run_goes_on(
    model: FakeModel, mira: Who, conversation: Conversation, folder: Path
) -> None:
    calls(model, EDIT)
    ask(mira, conversation)
    work()
    with replaying(f"conversation:{conversation.pk}"):
        decide_approval(who=mira, approval=waiting(conversation).pk, decision="approve")
        work()
    conversation.refresh_from_db()
    assert (folder / "a.txt").read_text() == "one\n2\n"
    assert kinds(conversation) == ["user", "assistant", "tool_result", "assistant"]
    assert conversation.state == State.IDLE
    approval = Approval.objects.get()
    assert approval.decided_by is not None
    assert approval.decided_by.name == mira.name


def test_a_decline_tells_the_model_who_and_why(
    model: FakeModel, mira: Who, conversation: Conversation, folder: Path
) -> None:
    calls(model, command("rm a.txt"))
    ask(mira, conversation)
    work()
    decide_approval(who=mira, approval=waiting(conversation).pk, decision="decline", comment="The farm reads it.")
    work()
    block = result(conversation)
    assert block["content"] == f"{DECLINED} {mira.name} said: The farm reads it."
    assert block["is_error"]
    assert (folder / "a.txt").exists()
    assert model.requests()[1]["messages"][-1]["content"][0]["content"] == block["content"]


def test_it_is_decided_once(model: FakeModel, mira: Who, conversation: Conversation) -> None:
    teo = make_person("teo")
    set_member(who=mira, root=conversation.pk, actor=teo.actor, role=Role.OPERATOR)
    calls(model, command("true"))
    ask(mira, conversation)
    work()
    approval = waiting(conversation).pk
    first = decide_approval(who=mira, approval=approval, decision="approve")
    assert decide_approval(who=mira, approval=approval, decision="approve").decided == first.decided
    for who, decision in ((teo, "approve"), (teo, "decline"), (mira, "decline")):
        with pytest.raises(Conflict) as refusal:
            decide_approval(who=who, approval=approval, decision=decision)
        assert refusal.value.code == "decided"
        assert refusal.value.facts["by"] == mira.name
        assert refusal.value.facts["decision"] == "approved"


def test_only_those_decide_who_may(model: FakeModel, mira: Who, conversation: Conversation) -> None:
    anouk, stranger = make_person("anouk"), make_person("stranger")
    set_member(who=mira, root=conversation.pk, actor=anouk.actor, role=Role.VIEWER)
    calls(model, command("true"))
    ask(mira, conversation)
    work()
    approval = waiting(conversation).pk
    with pytest.raises(Forbidden):
        decide_approval(who=anouk, approval=approval, decision="approve")
    with pytest.raises(NotFound):
        decide_approval(who=stranger, approval=approval, decision="approve")
    with pytest.raises(Invalid):
        decide_approval(who=mira, approval=approval, decision="perhaps")
    set_member(who=mira, root=conversation.pk, actor=anouk.actor, role=Role.OPERATOR)
    with pytest.raises(Forbidden):
        approve_always(who=anouk, approval=approval)
    assert waiting(conversation).pk == approval


def test_the_round_goes_on_when_the_last_is_decided(
    model: FakeModel, mira: Who, conversation: Conversation, folder: Path
) -> None:
    calls(model, command("echo first > b"), EDIT, {"name": "list_dir", "arguments": {}})
    ask(mira, conversation)
    work()
    first, second = Approval.objects.filter(status="waiting").order_by("pk")
    decide_approval(who=mira, approval=second.pk, decision="approve")
    work()
    assert len(model.bodies) == 1
    conversation.refresh_from_db()
    assert conversation.state == State.APPROVAL
    decide_approval(who=mira, approval=first.pk, decision="approve")
    work()
    assert len(model.bodies) == 2
    ids = [block["tool_use_id"] for block in model.requests()[1]["messages"][-1]["content"]]
    assert ids == [
        block["id"] for block in model.requests()[1]["messages"][-2]["content"] if block["type"] == "tool_use"
    ]


def test_a_file_changed_since_is_asked_anew(
    model: FakeModel, mira: Who, conversation: Conversation, folder: Path
) -> None:
    calls(model, EDIT)
    ask(mira, conversation)
    work()
    (folder / "a.txt").write_text("zero\none\ntwo\n")
    decide_approval(who=mira, approval=waiting(conversation).pk, decision="approve")
    work()
    assert (folder / "a.txt").read_text() == "zero\none\ntwo\n"
    again = waiting(conversation)
    assert again.anew
    assert "zero" in json.loads(again.preview)["diff"]
    decide_approval(who=mira, approval=again.pk, decision="approve")
    work()
    assert (folder / "a.txt").read_text() == "zero\none\n2\n"
    assert Approval.objects.filter(task=again.task).count() == 2


def test_an_edit_that_cannot_apply_is_not_shown_to_anyone(
    model: FakeModel, mira: Who, conversation: Conversation
) -> None:
    calls(model, {"name": "edit_file", "arguments": {"path": "a.txt", "old_string": "three", "new_string": "3"}})
    ask(mira, conversation)
    work()
    assert not Approval.objects.exists()
    assert "does not occur" in result(conversation)["content"]


def test_a_stop_ends_what_waits(model: FakeModel, mira: Who, conversation: Conversation) -> None:
    calls(model, EDIT)
    ask(mira, conversation)
    work()
    with replaying(f"conversation:{conversation.pk}"):
        stop_conversation(who=mira, conversation=conversation.pk)
    approval = Approval.objects.get()
    assert (approval.status, approval.decided_by, approval.comment) == ("ended", None, "The run was stopped.")
    assert result(conversation)["content"] == STOPPED
    conversation.refresh_from_db()
    assert conversation.state == State.IDLE
    with pytest.raises(Conflict, match="by the system"):
        decide_approval(who=mira, approval=approval.pk, decision="approve")


def test_nobody_decides_for_a_week(model: FakeModel, mira: Who, conversation: Conversation) -> None:
    calls(model, EDIT)
    ask(mira, conversation)
    work()
    with moved(LIFE - timedelta(minutes=1)):
        expire_approvals()
        assert waiting(conversation)
    with moved(LIFE + timedelta(minutes=1)):
        expire_approvals()
        work()
    assert Approval.objects.get().status == "ended"
    assert "Nobody decided within 7 days" in result(conversation)["content"]
    assert len(model.bodies) == 2


def test_a_rule_decides_without_asking(model: FakeModel, mira: Who, conversation: Conversation, folder: Path) -> None:
    calls(model, command("echo once >> log"), command("echo once >> log"), command("echo other >> log"))
    ask(mira, conversation)
    work()
    first = Approval.objects.filter(status="waiting").order_by("pk")[0]
    approve_always(who=mira, approval=first.pk)
    work()
    assert [row.status for row in Approval.objects.order_by("pk")] == ["approved", "approved", "waiting"]
    rule = Rule.objects.get()
    second = Approval.objects.order_by("pk")[1]
    assert (second.rule, second.decided_by) == (rule, None)
    decide_approval(who=mira, approval=waiting(conversation).pk, decision="decline")
    work()
    assert (folder / "log").read_text() == "once\nonce\n"
    end_rule(who=mira, rule=rule.pk)
    end_rule(who=mira, rule=rule.pk)
    calls(model, command("echo once >> log"))
    ask(mira, conversation, "Again, please")
    work()
    assert waiting(conversation)


@pytest.mark.parametrize(
    ("match", "path", "fits"),
    [
        ("docs/*", "docs/a/b.md", True),
        ("docs/*", "docs/../a.txt", False),
        ("a.txt", "./a.txt", True),
        ("*", "../x", False),
    ],
)
def test_which_paths_a_rule_fits(match: str, path: str, fits: bool) -> None:
    assert fits_rule(Rule(tool="edit_file", match=match), {"path": path}) is fits


def test_a_rule_has_to_fit_the_call_that_it_is_made_of(model: FakeModel, mira: Who, conversation: Conversation) -> None:
    calls(model, command("make test"))
    ask(mira, conversation)
    work()
    with pytest.raises(Invalid):
        approve_always(who=mira, approval=waiting(conversation).pk, match="make deploy")
    assert not Rule.objects.exists()


def test_a_command_that_a_crash_cut_off_is_not_run_again(
    model: FakeModel, mira: Who, conversation: Conversation, folder: Path
) -> None:
    """A4: run_command is not replay-safe."""
    calls(model, command("echo ran >> log"))
    ask(mira, conversation)
    work()
    decide_approval(who=mira, approval=waiting(conversation).pk, decision="approve")
    tool = Task.objects.get(kind="tool")
    # The phase in which it runs is committed, and then its worker is gone.
    Task.objects.filter(pk=tool.pk).update(status="pending", phase="once", subject="", facts='{"hash":""}', attempts=1)
    claim_one(tool.pk)
    with moved(LEASE * 2):
        work()
    assert result(conversation)["content"] == INTERRUPTED
    assert not (folder / "log").exists()
    assert kinds(conversation)[-1] == "assistant"


def test_a_read_that_a_crash_cut_off_is_run_again(model: FakeModel, mira: Who, conversation: Conversation) -> None:
    calls(model, {"name": "read_file", "arguments": {"path": "a.txt"}})
    ask(mira, conversation)
    generation = claim_one()
    run_claim(generation)
    tool = Task.objects.get(kind="tool")
    Task.objects.filter(pk=tool.pk).update(phase="repeat", attempts=1)
    claim_one(tool.pk)
    with moved(LEASE * 2):
        work()
    assert result(conversation)["content"].startswith("one\n")


def test_it_waits_through_a_restart(model: FakeModel, mira: Who, conversation: Conversation, folder: Path) -> None:
    """Nothing of it is in memory: a decision long after, and any worker goes on."""
    calls(model, EDIT)
    ask(mira, conversation)
    work()
    with moved(timedelta(days=2)):
        assert work() == 0
        decide_approval(who=mira, approval=waiting(conversation).pk, decision="approve")
        work()
    assert (folder / "a.txt").read_text() == "one\n2\n"


def test_a_stop_in_the_middle_of_a_command_keeps_what_it_said(
    model: FakeModel, mira: Who, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls(model, command("echo begun; sleep 600"))
    ask(mira, conversation)
    work()
    decide_approval(who=mira, approval=waiting(conversation).pk, decision="approve")

    def stopping(root: str, line: str, *, stopped: Callable[[], bool]) -> Ran:
        looks = 0

        def stopped_soon() -> bool:
            nonlocal looks
            looks += 1
            if looks == 5:  # a second in
                stop_conversation(who=mira, conversation=conversation.pk)
                look_at_held(renew=False)
            return stopped()

        return run_command(root, line, stopped=stopped_soon)

    monkeypatch.setattr("lineage.agent.tools.folder.run_command", stopping)
    work()
    conversation.refresh_from_db()
    assert result(conversation)["content"] == "begun\n\n(Stopped by a person, with all that it had started.)"
    assert (kinds(conversation)[-1], conversation.state) == ("tool_result", State.IDLE)
    assert len(model.bodies) == 1

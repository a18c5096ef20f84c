"""L10 with SIGKILL in the middle of a stream and of a tool: nothing is lost, nothing happens twice."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from console.access import Who
from console.clock import moved
from documents.actions.documents import create_document
from documents.models import Document
from lineage.actions.approvals import decide_approval
from lineage.models import Approval, Conversation, Draft, Entry, Task, TaskStatus
from lineage.tasks.boundaries import EXIT_STATUS, POINTS
from lineage.tasks.claiming import LEASE
from lineage.tasks.kinds.tool import INTERRUPTED
from tests.factories import make_person, make_root
from tests.lineage.agent.fakemodel import FakeModel, Fault, fake_model
from tests.lineage.agent.test_approvals import EDIT, calls, command, result
from tests.lineage.agent.test_tools import spawns
from tests.lineage.agent.test_turns import ask, kinds, texts
from tests.lineage.agent.workers import Workers
from tests.lineage.working import work

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60.0  # for what takes a second on an idle machine


@pytest.fixture
def who() -> Who:
    return make_person()


@pytest.fixture
def conversation(who: Who, tmp_path: Path) -> Conversation:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    return make_root(who, folder=str(tmp_path)).conversation


@pytest.fixture(scope="module")
def running() -> Iterator[FakeModel]:
    with fake_model() as found:
        yield found


@pytest.fixture
def model(running: FakeModel, settings: Settings) -> FakeModel:
    """One server for all: workers learn its address when they are started."""
    settings.ANTHROPIC_BASE_URL, settings.MODELS = running.url, ["fake-large"]
    running.bodies.clear()
    running.faults.clear()
    running.held.clear()
    running.go.clear()
    return running


@pytest.fixture(scope="module")
def workers(running: FakeModel, django_db_setup: None) -> Iterator[Workers]:
    found = Workers(running.url)
    yield found
    found.process.communicate()


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def test_in_the_middle_of_a_stream(workers: Workers, model: FakeModel, who: Who, conversation: Conversation) -> None:
    """The partial answer is kept, and the model is asked again."""
    model.says("one two three four")
    model.faults.append(Fault(hold_after=5))
    ask(who, conversation)
    worker = workers.start()
    until(lambda: Draft.objects.filter(blocks__contains="two").exists())
    workers.kill(worker)
    model.go.set()
    assert json.loads(Draft.objects.get().blocks)[0]["text"].startswith("one two")
    with moved(LEASE * 2):
        work()
    assert kinds(conversation) == ["user", "assistant aborted", "assistant"]
    assert texts(conversation)[1].startswith("one two")
    assert texts(conversation)[2] == "one two three four"
    assert not Draft.objects.exists()


def test_in_the_middle_of_a_command(
    workers: Workers, model: FakeModel, who: Who, conversation: Conversation, tmp_path: Path
) -> None:
    """The command ends with its worker and is not run again; the approval beside it still waits."""
    calls(model, command("echo ran >> log; sleep 600"), EDIT)
    ask(who, conversation)
    work()
    run, edit = Approval.objects.order_by("pk")
    decide_approval(who=who, approval=run.pk, decision="approve")
    worker = workers.start()
    until((tmp_path / "log").exists)
    workers.kill(worker)
    with moved(LEASE * 2):
        work()
        assert result(conversation)["content"] == INTERRUPTED
        edit.refresh_from_db()
        assert edit.status == "waiting"
        decide_approval(who=who, approval=edit.pk, decision="approve")
        work()
    assert (tmp_path / "log").read_text() == "ran\n"
    assert (tmp_path / "a.txt").read_text() == "one\n2\n"
    assert kinds(conversation)[-1] == "assistant"


def test_after_the_effect_of_a_safe_tool(
    workers: Workers, model: FakeModel, who: Who, conversation: Conversation
) -> None:
    """It is run again, and its request id sees to it that the document is edited once."""
    document = create_document(who=who, conversation=conversation.pk, title="Plan", text="one\n")
    edits = [{"old_string": "one", "new_string": "one and more"}]
    calls(model, {"name": "document_edit", "arguments": {"document": document.pk, "edits": edits}})
    ask(who, conversation)
    assert workers.ended(workers.start("tool:repeat:commit")) == EXIT_STATUS
    assert Document.objects.get(pk=document.pk).revision == 1
    with moved(LEASE * 2):
        work()
    assert Document.objects.get(pk=document.pk).revision == 1
    assert result(conversation)["content"] == f"Recorded as revision 1 of document {document.pk}."


def boundaries(*phases: str) -> list[str]:
    return [f"{phase}:{point}" for phase in phases for point in POINTS]


BOUNDARIES = boundaries(
    "generation:ask", "generation:gather", "tool:prepare", "tool:decide", "tool:once", "tool:repeat"
)
OF_A_CHILD = boundaries("tool:child")


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_at_every_boundary(
    workers: Workers, model: FakeModel, who: Who, conversation: Conversation, tmp_path: Path, boundary: str
) -> None:
    """One call that asks and one that does not: each has one result, the run one answer, the command ran at most once."""
    tools = [command("echo ran >> log"), {"name": "list_dir", "arguments": {}}]
    model.rules(  # by what was sent, not by turns: the same request comes again
        {"when": {"previous_message_role": "assistant"}, "respond": {"content": "Done."}},
        {"respond": {"content": "I need this.", "tool_calls": tools}},
    )
    ask(who, conversation)
    if boundary.startswith(("tool:decide", "tool:once", "generation:gather")):
        work()
        decide_approval(who=who, approval=Approval.objects.get().pk, decision="approve")
    assert workers.ended(workers.start(boundary)) == EXIT_STATUS
    with moved(LEASE * 2):
        work()
        for approval in Approval.objects.filter(status="waiting"):
            decide_approval(who=who, approval=approval.pk, decision="approve")
        work()
    results = Entry.objects.filter(conversation=conversation, kind="tool_result")
    assert results.count() == 2
    assert Entry.objects.filter(conversation=conversation, kind="assistant", outcome="").count() == 2
    log = (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""
    assert log in {"ran\n", ""}
    assert (log == "ran\n") or any(INTERRUPTED in entry.model for entry in results)
    assert not Task.objects.filter(foreground=True).exclude(status=TaskStatus.TERMINAL).exists()


@pytest.mark.parametrize("boundary", OF_A_CHILD)
def test_while_a_subagent_is_waited_for(
    workers: Workers, model: FakeModel, who: Who, conversation: Conversation, boundary: str
) -> None:
    """One subagent, one answer of it, told once."""
    spawns(model, {"content": "The helper's answer."})
    ask(who, conversation, "Start")
    assert workers.ended(workers.start(boundary)) == EXIT_STATUS
    with moved(LEASE * 2):
        work()
    child = Conversation.objects.get(kind="agent")
    assert texts(child) == ["CHILD TASK", "The helper's answer."]
    assert kinds(conversation) == ["user", "assistant", "tool_result", "assistant"]
    assert f"#{child.pk} answered at #{child.pk}/2:\n\nThe helper's answer." in texts(conversation)
    assert not Task.objects.exclude(status=TaskStatus.TERMINAL).exists()

"""The console's own tools (A4): what they do, that a rerun does nothing twice, and subagents."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.access import Who
from console.errors import DomainError
from documents.actions.documents import create_document
from documents.models import Document
from documents.texts import text_at
from lineage.actions.agents import agent_of, who_is_agent
from lineage.actions.approvals import decide_approval
from lineage.actions.entries import lock_conversation
from lineage.actions.memory import apply_memory_ops
from lineage.actions.stops import stop_conversation
from lineage.actions.subagents import DEPTH, start_subagent
from lineage.agent.failures import ToolFailed
from lineage.agent.messages import as_blocks
from lineage.agent.tools import INSIDE, OUTSIDE, Caller, Said, find_tool, offered
from lineage.models import Approval, Conversation, Entry, Memory, Note, State, Task
from lineage.state import own_usage, subtree_usage
from tests.factories import make_person, make_root
from tests.lineage.agent.fakemodel import FakeModel
from tests.lineage.agent.test_turns import ask, kinds, texts
from tests.lineage.working import work

pytestmark = pytest.mark.django_db


@pytest.fixture
def who() -> Who:
    return make_person()


@pytest.fixture
def conversation(who: Who, tmp_path: Path) -> Conversation:
    return make_root(who, folder=str(tmp_path)).conversation


@pytest.fixture
def call(conversation: Conversation) -> Callable[..., Said]:
    """Call a tool as the agent of the conversation does; the same `again` is the same call."""

    def called(name: str, again: str = "1", **given: Any) -> Said:
        row = lock_conversation(conversation.pk)
        agent_of(conversation=row)
        tool = find_tool(name)
        assert tool is not None
        caller = Caller(who=who_is_agent(row), conversation=row.pk, root=row.root_id, request_id=f"t:{again}", call="c")
        return tool.run(caller, tool.checked(given))

    return called


def test_the_tools_come_in_a_fixed_order_with_schemas() -> None:
    names = [tool.name for tool in INSIDE]
    assert names[:5] == ["read_file", "list_dir", "search", "edit_file", "run_command"]
    assert names[5:] == [
        *("note", "notify", "memory", "remember", "branch", "spawn", "abstract"),
        *("document_list", "document_read", "document_edit", "attachment_list", "attachment_read"),
    ]
    assert "spawn" not in [tool.name for tool in OUTSIDE]
    for tool in INSIDE:
        assert tool.schema["type"] == "object"
        assert "$ref" not in json.dumps(tool.schema)
    assert {tool.name for tool in INSIDE if not tool.replay_safe} == {"remember", "edit_file", "run_command"}
    assert {tool.name for tool in INSIDE if tool.asks} == {"edit_file", "run_command"}


def test_without_a_folder_its_tools_are_not_offered() -> None:
    assert not any(tool.in_folder for tool in offered(folder=""))
    assert [tool.name for tool in offered(folder="/x", only=["read_file", "note"])] == ["read_file", "note"]


def test_what_does_not_fit_is_named() -> None:
    tool = find_tool("document_read")
    assert tool is not None
    assert tool.checked({"document": 3.0}).document == 3
    for wrong, saying in (({}, "document"), ({"document": "x"}, "int"), ({"document": 1, "page": 2}, "page")):
        with pytest.raises(ToolFailed, match=saying):
            tool.checked(wrong)


def test_a_note_is_left_once(call: Callable[..., Said], who: Who, conversation: Conversation) -> None:
    other = make_root(who).conversation
    with pytest.raises(DomainError):
        call("note", to=other.pk, text="Not my tree")
    assert "is placed" in call("note", to="root", text="See #3").text
    call("note", to="root", text="See #3")
    assert Note.objects.count() == 1
    assert "number of a conversation" in _failure(lambda: call("note", to="everyone", text="x"))


def _failure(act: Callable[[], object]) -> str:
    with pytest.raises(ToolFailed) as failure:
        act()
    return str(failure.value)


def test_memory_is_read_and_only_the_main_agent_writes_it(
    call: Callable[..., Said], who: Who, conversation: Conversation
) -> None:
    op = {"op": "add", "slug": "slow-disk", "kind": "fact", "line": "Writes wait", "body": "Since May."}
    assert "remembers nothing yet" in call("memory").text
    apply_memory_ops(who=who, root=conversation.pk, ops=[op])
    assert call("memory").text == "- slow-disk (fact): Writes wait"
    assert "Since May." in call("memory", read="slow-disk").text
    with pytest.raises(DomainError, match="main agent"):
        call("remember", ops=[{**op, "slug": "other"}])
    conversation.root.main = lock_conversation(conversation.pk).agent
    conversation.root.save()
    assert "now has 2 memories" in call("remember", ops=[{**op, "slug": "other"}]).text
    call("remember", ops=[{**op, "slug": "other"}])
    assert Memory.objects.count() == 2


def test_a_document_is_listed_read_and_edited(call: Callable[..., Said], who: Who, conversation: Conversation) -> None:
    document = create_document(who=who, conversation=conversation.pk, title="Plan", text="one\ntwo\n")
    assert call("document_list").text == f"{document.pk}: Plan (revision 0)"
    page = call("document_read", document=document.pk, offset=4, limit=2)
    assert page.text == "tw\n\n(Plan, revision 0: characters 4 to 6 of 8. Read on with offset=6.)"
    assert page.data is not None
    assert page.data["next_offset"] == 6
    edits = [{"old_string": "two", "new_string": "2"}]
    assert call("document_edit", document=document.pk, edits=edits).text == (
        f"Recorded as revision 1 of document {document.pk}."
    )
    call("document_edit", document=document.pk, edits=edits)
    row = Document.objects.get(pk=document.pk)
    assert (row.revision, text_at(row, 1)) == (1, "one\n2\n")
    assert [entry.kind for entry in Entry.objects.filter(conversation=conversation)] == ["document.edited"]
    with pytest.raises(DomainError) as refusal:
        call("document_edit", again="2", document=document.pk, edits=edits)
    assert refusal.value.code == "absent"


@pytest.mark.parametrize(
    ("given", "code"),
    [({"offset": -1}, "negative_offset"), ({"offset": 9}, "offset_past_end"), ({"offset": "x"}, "malformed_number")],
)
def test_places_in_a_document_are_checked(
    call: Callable[..., Said], who: Who, conversation: Conversation, given: dict[str, Any], code: str
) -> None:
    document = create_document(who=who, conversation=conversation.pk, title="Plan", text="one\ntwo\n")
    assert call("document_read", document=document.pk, offset=8).text.startswith("\n\n(")
    with pytest.raises(DomainError) as refusal:
        call("document_read", document=document.pk, **given)
    assert refusal.value.code == code


def test_a_long_page_fits_a_result_and_its_cursor_goes_on_there(
    call: Callable[..., Said], who: Who, conversation: Conversation
) -> None:
    text = "".join(f"{number:07d}\n" for number in range(10_000))
    document = create_document(who=who, conversation=conversation.pk, title="Long", text=text)
    read, offset = "", 0
    while True:
        said = call("document_read", document=document.pk, offset=offset, limit=65_536).text
        (block,) = as_blocks([{"type": "tool_result", "tool_use_id": "c", "content": said}])
        assert block["content"] == said  # no request cuts it
        part, _, note = said.rpartition("\n\n(")
        read += part
        found = re.search(r"Read on with offset=(\d+)", note)
        if found is None:
            break
        offset = int(found[1])
    assert read == text


def test_a_branch_is_started_once(call: Callable[..., Said], conversation: Conversation) -> None:
    number = call("branch", prompt="Look into it").data
    assert call("branch", prompt="Look into it").data == number
    assert Conversation.objects.filter(kind="branch").count() == 1


def spawns(model: FakeModel, *child: dict[str, Any]) -> None:
    """The first conversation spawns; the subagent, told by its prompt, does what `child` says."""
    model.rules(
        *({"when": {"messages_contain": "CHILD TASK", "turn": turn}, "respond": r} for turn, r in enumerate(child, 1)),
        {
            "when": {"turn": 1},
            "respond": {"tool_calls": [{"name": "spawn", "arguments": {"prompt": "CHILD TASK", "title": "Helper"}}]},
        },
        {"respond": {"content": "All done."}},
    )


def test_a_subagents_answer_is_the_result(model: FakeModel, who: Who, conversation: Conversation) -> None:
    spawns(model, {"content": "The helper's answer."})
    ask(who, conversation, "Start")
    work()
    child = Conversation.objects.get(kind="agent")
    assert (child.owner_id, child.title, child.root_id) == (conversation.pk, "Helper", conversation.pk)
    assert texts(child) == ["CHILD TASK", "The helper's answer."]
    assert f"#{child.pk} answered at #{child.pk}/2:\n\nThe helper's answer." in texts(conversation)
    assert kinds(conversation) == ["user", "assistant", "tool_result", "assistant"]
    conversation.refresh_from_db()
    assert conversation.state == State.IDLE
    own, tree = own_usage(conversation.pk), subtree_usage(conversation.pk)
    assert tree["output_tokens"] == (own["output_tokens"] or 0) + (own_usage(child.pk)["output_tokens"] or 0)
    assert (tree["cost_micros"] or 0) > (own["cost_micros"] or 0)


def test_an_approval_is_raised_at_any_depth(
    model: FakeModel, who: Who, conversation: Conversation, tmp_path: Path
) -> None:
    command = {"name": "run_command", "arguments": {"command": "echo deep > file"}}
    spawns(model, {"content": "I must.", "tool_calls": [command]}, {"content": "Ran."})
    ask(who, conversation, "Start")
    work()
    approval = Approval.objects.get()
    child = Conversation.objects.get(kind="agent")
    conversation.refresh_from_db()
    assert (approval.conversation_id, approval.root_id) == (child.pk, conversation.pk)
    assert (child.state, conversation.state) == (State.APPROVAL, State.CHILD)
    decide_approval(who=who, approval=approval.pk, decision="approve")
    work()
    assert (tmp_path / "file").read_text() == "deep\n"
    assert texts(conversation)[-1] == "All done."


def test_a_stop_ends_the_subagent_too(model: FakeModel, who: Who, conversation: Conversation) -> None:
    spawns(model, {"tool_calls": [{"name": "run_command", "arguments": {"command": "true"}}]})
    ask(who, conversation, "Start")
    work()
    stop_conversation(who=who, conversation=conversation.pk)
    assert not Task.objects.filter(foreground=True).exclude(status="terminal").exists()
    assert Approval.objects.get().status == "ended"
    assert {row.state for row in Conversation.objects.all()} == {State.IDLE}


def test_a_restricted_subagent_has_only_its_tools(model: FakeModel, who: Who, conversation: Conversation) -> None:
    arguments = {"prompt": "CHILD TASK", "tools": ["read_file"]}
    model.rules(
        {"when": {"messages_contain": "CHILD TASK", "turn": 1}, "respond": {"content": "Read."}},
        {"when": {"turn": 1}, "respond": {"tool_calls": [{"name": "spawn", "arguments": arguments}]}},
        {"respond": {"content": "Done."}},
    )
    ask(who, conversation, "Start")
    work()
    (sent,) = [r for r in model.requests() if r["messages"][0]["content"][0]["text"] == "CHILD TASK"]
    assert [tool["name"] for tool in sent["tools"]] == ["read_file"]


def test_too_many_subagents_deep_is_refused(call: Callable[..., Said], model: FakeModel, who: Who) -> None:
    owner = Conversation.objects.get().pk
    for depth in range(DEPTH):
        owner = start_subagent(who=who, owner=owner, at=0, call=f"c{depth}", prompt="Go deeper")
    with pytest.raises(DomainError) as refusal:
        start_subagent(who=who, owner=owner, at=0, call="c", prompt="Too deep")
    assert refusal.value.code == "too_deep"

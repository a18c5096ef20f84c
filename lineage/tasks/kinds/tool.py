"""*tool*: one call of a model (A2–A4). It waits for a person where its tool asks, runs, and leaves one result entry whatever
happens to it. A call that a crash cut off is run again only where its tool says that this is safe."""

import json
from typing import Any

from console.errors import DomainError
from console.json_text import dumped
from lineage.actions.agents import who_is_agent
from lineage.actions.approvals import approval_subject, end_approvals_of, raise_approval
from lineage.actions.entries import NewEntry, place_entries
from lineage.actions.settling import is_idle, settle
from lineage.actions.states import announce_state
from lineage.actions.wakes import conversation_subject
from lineage.agent.failures import ToolFailed
from lineage.agent.folder.commands import SECONDS
from lineage.agent.folder.editing import FileChanged, preview_edit
from lineage.agent.tools import Caller, Said, Tool, find_tool, offered
from lineage.loading import last_own_answer
from lineage.models import Approval, ApprovalStatus, Conversation, State, Task, TaskOutcome
from lineage.tasks.definitions import Definition, register_kind
from lineage.tasks.running import Aborted, Commit, Run
from lineage.transcripts.tools import call_line

INTERRUPTED = (
    "Interrupted: the console's worker ended in the middle of this call. Whether it took effect is unknown: look before you "
    "call it again."
)
DECLINED = "A person declined this. Do not try to reach the same another way; ask what is wanted instead."
STOPPED = "Stopped by a person before it was done."


def prepare(run: Run) -> None:
    """Look at the call without doing anything: refuse it, ask for a decision, or let it run."""
    if run.aborting.is_set():
        raise Aborted
    conversation = Conversation.objects.get(pk=run.conversation)
    try:
        tool = _tool_of(run, conversation)
        tool.checked(run.input["input"])
        shown, hash_ = _preview(tool, conversation, run.input["input"]) if tool.asks else ({}, "")
    except ToolFailed as failure:
        _finish(run, Said(text=str(failure), error=True))
        return
    with run.commit() as commit:
        if tool.asks:
            _ask(commit, run, tool, shown, hash_, anew=False)
        else:
            commit.go("repeat" if tool.replay_safe else "once")


def decide(run: Run) -> None:
    """After a wake: what was decided about the newest question of this call?"""
    approval = Approval.objects.filter(task=run.task).order_by("-pk").select_related("decided_by").first()
    assert approval is not None
    if approval.status == ApprovalStatus.WAITING:
        with run.commit() as commit:
            commit.wait(approval_subject(approval.pk), shows=State.APPROVAL, why=approval.line)
    elif approval.status == ApprovalStatus.APPROVED:
        with run.commit() as commit:
            commit.go("once", {"approval": approval.pk, "hash": approval.hash})
    else:
        said = approval.comment
        if approval.status == ApprovalStatus.DECLINED:
            by = approval.decided_by.name if approval.decided_by is not None else "someone"
            said = f"{DECLINED} {by} said: {said}" if said else DECLINED
        _finish(run, Said(text=said, error=True, line=str(approval.status), facts={"approval": approval.pk}))


def repeat(run: Run) -> None:
    """A call that may run again after a crash; its request id sees to it that its effect happens once (R4)."""
    if run.aborting.is_set():
        raise Aborted
    conversation, tool = _called(run)
    said = _said_by(tool, conversation, run)
    if said.waits_for is None:
        _finish(run, said)
        return
    with run.commit() as commit:
        commit.go("child", {"child": said.waits_for, "text": said.text})


def once(run: Run) -> None:
    """A call that must not run twice. The phase was committed before; a second attempt means that the first was cut off."""
    if run.aborting.is_set():
        raise Aborted
    if run.attempts > 1:
        _finish(run, Said(text=INTERRUPTED, error=True, line="interrupted", facts={"interrupted": True}))
        return
    conversation, tool = _called(run)
    try:
        said = _said_by(tool, conversation, run)
    except FileChanged:
        _ask_anew(run, tool, conversation)
        return
    if run.aborting.is_set():
        _keep_for_the_end(run, said)
        raise Aborted
    _finish(run, said)


def child(run: Run) -> None:
    """Wait for a conversation that this call started; its newest answer is the result."""
    number = int(run.facts["child"])
    with run.commit(conversations=[number]) as commit:
        row = commit.conversations[number]
        if not is_idle(row):
            commit.wait(
                conversation_subject(number), shows=State.CHILD, why=f"waits for #{number} {row.title}".rstrip()
            )
            return
        seq, text = last_own_answer(row)
        answered = f"#{number} answered at #{number}/{seq}:\n\n{text}"
        silent = f"#{number} ended without an answer. {row.state_why}".rstrip()
        said = Said(
            text=answered if text else silent, error=not text, line=f"#{number}", facts={"conversation": number}
        )
        _place(commit, run, said)


def ended(task: Task, conversation: Conversation) -> None:
    """Whatever its end, the call has one result, and nothing waits for it any more."""
    if task.outcome != TaskOutcome.COMPLETED:
        stopped = task.outcome == TaskOutcome.ABORTED
        why = STOPPED if stopped else task.error or INTERRUPTED
        end_approvals_of(task=task, why="The run was stopped." if stopped else why)
        kept = json.loads(task.facts).get("said")
        said = Said(**kept) if kept else Said(text=why, error=True, line="stopped" if stopped else "failed")
        place_entries(conversation=conversation, entries=[_entry(json.loads(task.input), said, conversation)])
    settle(conversation=conversation, announce=True)


def _tool_of(run: Run, conversation: Conversation) -> Tool:
    name = str(run.input["name"])
    tool = find_tool(name)
    if tool is None or tool not in offered(folder=conversation.folder, only=conversation.tools):
        raise ToolFailed(f"There is no tool {name[:80]} here. Use one of those that the request names.")
    return tool


def _called(run: Run) -> tuple[Conversation, Tool]:
    conversation = Conversation.objects.select_related("agent", "root").get(pk=run.conversation)
    return conversation, _tool_of(run, conversation)


def _preview(tool: Tool, conversation: Conversation, given: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """What a person is shown before deciding, and the hash of the file as it stands."""
    if tool.name == "run_command":
        return {"command": given["command"], "folder": conversation.folder, "seconds": SECONDS}, ""
    shown = preview_edit(conversation.folder, given["path"], given["old_string"], given["new_string"])
    facts = {name: getattr(shown, name) for name in ("path", "diff", "characters", "added", "removed")}
    return facts, shown.hash


def _ask(commit: Commit, run: Run, tool: Tool, shown: dict[str, Any], hash_: str, *, anew: bool) -> None:
    call = run.input
    line = f"{tool.name} {call_line(tool.name, call['input'], commit.conversation.folder)}".strip()
    approval = raise_approval(
        task=commit.task,
        conversation=commit.conversation,
        seq=call["seq"],
        call=call["call"],
        tool=tool.name,
        arguments=call["input"],
        line=line,
        preview=shown,
        hash=hash_,
        why=call.get("why", ""),
        anew=anew,
    )
    if approval.status == ApprovalStatus.APPROVED:
        commit.go("once", {"approval": approval.pk, "hash": approval.hash})
    else:
        commit.wait(approval_subject(approval.pk), phase="decide", shows=State.APPROVAL, why=line)
    announce_state(conversation=commit.conversation)


def _ask_anew(run: Run, tool: Tool, conversation: Conversation) -> None:
    """The file is another one than was approved: show what the edit would do now, or refuse what can no longer be done."""
    try:
        shown, hash_ = _preview(tool, conversation, run.input["input"])
    except ToolFailed as failure:
        _finish(run, Said(text=str(failure), error=True))
        return
    with run.commit() as commit:
        _ask(commit, run, tool, shown, hash_, anew=True)


def _said_by(tool: Tool, conversation: Conversation, run: Run) -> Said:
    """Run the tool; every failure that it names is something for the model to read."""
    call = run.input
    caller = Caller(
        who=who_is_agent(conversation),
        conversation=conversation.pk,
        root=conversation.root_id,
        folder=conversation.folder,
        request_id=f"tool:{run.task}:{call['call']}"[:200],
        at=call["seq"],
        call=call["call"],
        expected=run.facts.get("hash"),
        stopped=run.aborting.is_set,
    )
    try:
        return tool.run(caller, tool.checked(call["input"]))
    except FileChanged:
        raise
    except ToolFailed as failure:
        return Said(text=str(failure), error=True)
    except DomainError as refusal:
        facts = f" {dumped(refusal.facts)}" if refusal.facts else ""
        return Said(text=f"{refusal.message}{facts}", error=True, line=refusal.code)


def _keep_for_the_end(run: Run, said: Said) -> None:
    """What a stopped call had said until then, for the entry that its end writes."""
    kept = {"text": said.text, "line": said.line, "error": said.error, "facts": said.facts}
    Task.objects.filter(pk=run.task, lease=run.lease).update(facts=dumped({**run.facts, "said": kept}))


def _finish(run: Run, said: Said) -> None:
    with run.commit() as commit:
        _place(commit, run, said)


def _place(commit: Commit, run: Run, said: Said) -> None:
    (entry,) = place_entries(conversation=commit.conversation, entries=[_entry(run.input, said, commit.conversation)])
    commit.complete({"entry": entry.seq})


def _entry(call: dict[str, Any], said: Said, conversation: Conversation) -> NewEntry:
    block = {"type": "tool_result", "tool_use_id": call["call"], "content": said.text}
    note: dict[str, Any] = {"id": call["call"], "name": call["name"], "line": said.line, **said.facts}
    if said.error:
        block["is_error"] = True
        note["error"] = True
    return NewEntry(
        kind="tool_result",
        model=[{"role": "user", "content": [block]}],
        data={"results": [note]},
        author=conversation.agent_id,
    )


TOOL = register_kind(
    Definition(
        kind="tool",
        version=1,
        first="prepare",
        phases={"prepare": prepare, "decide": decide, "repeat": repeat, "once": once, "child": child},
        foreground=True,
        ended=ended,
    )
)

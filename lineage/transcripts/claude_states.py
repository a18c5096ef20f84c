"""What a conversation does after a line, by the format's own marks (L8). Pure. Silence is no mark: it changes nothing here."""

from typing import Any

from lineage.transcripts.claude_agents import COMPACTS, agent_key
from lineage.transcripts.claude_draft import Draft
from lineage.transcripts.claude_lines import Sort, message_of, name_in, parsed_time
from lineage.transcripts.claude_memory import Branch, Memory
from lineage.transcripts.content import Content
from lineage.transcripts.plan import RunState
from lineage.transcripts.tools import call_line, flat

_QUESTIONS = frozenset({"AskUserQuestion", "ExitPlanMode"})
_AGENTS = frozenset({"Agent", "Task"})
_ENDS = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal", "model_context_window_exceeded"})
_QUIET = frozenset({RunState.IDLE, RunState.FAILED})
_STOP_HOOKS = frozenset({"Stop", "SubagentStop", "SessionEnd"})


def state_after(
    branch: Branch, sort: Sort, line: dict[str, Any], content: Content | None
) -> tuple[RunState, str] | None:
    """(state, why) after this line, or none when the line says nothing about it. Keeps `branch.waits`."""
    if content is not None:
        waits = {call: state for call, state in branch.waits.items() if call not in content.answered}
        for call, tool, given in content.asked:
            state = RunState.ANSWER if tool in _QUESTIONS else RunState.CHILD if tool in _AGENTS else RunState.RUNNING
            waits[call] = state
            branch.cut_short = False
            if state == RunState.ANSWER:
                branch.why = call_line(tool, given)
        branch.waits = waits
    match sort:
        case Sort.PROMPT:
            branch.waits, branch.cut_short = {}, False
            return RunState.RUNNING, ""
        case Sort.INTERRUPTED:
            branch.waits, branch.cut_short = {}, True
            return RunState.IDLE, "interrupted"
        case Sort.RESULT:
            return _waiting(branch)
        case Sort.ASSISTANT:
            if content is not None and content.kind == "claude.error":
                branch.waits, branch.cut_short = {}, True
                return RunState.FAILED, flat(str(content.data.get("text", "")))
            branch.cut_short = False
            if not branch.waits and message_of(line).get("stop_reason") in _ENDS:
                return RunState.IDLE, ""
            return _waiting(branch)
        case Sort.QUIET:
            return _after_notice(branch, line)
        case Sort.INJECTED:
            if content is not None and str(content.data.get("command", "")).split(" ")[0] in ("/exit", "/quit"):
                branch.waits = {}
                return RunState.IDLE, ""
    return None


def ends_turn(line: dict[str, Any], content: Content) -> bool:
    """Whether the line is the format's mark that the agent has ended its turn."""
    if content.kind == "turn_end":
        return True
    return content.kind == "assistant" and not content.asked and message_of(line).get("stop_reason") in _ENDS


def close_agents(draft: Draft) -> None:
    """Agents that have ended, by what was read of their callers, unless their file has gone on since."""
    memory, file = draft.memory, draft.file
    if file.agent:
        number = memory.by_key.get(agent_key(file.agent), -1)
        ended = parsed_time(memory.done.get(file.agent))
        if ended is not None and (file.time is None or file.time <= ended):
            memory.ended.add(file.agent)
        if number >= 0 and (file.agent.startswith(COMPACTS) or _outlived(memory, memory.branches[number])):
            memory.ended.add(file.agent)
    for agent in sorted(memory.ended):
        _end(draft, memory.by_key.get(agent_key(agent), -1))
    memory.ended.clear()
    for number in sorted(draft.dirty):
        for owned in memory.owned.get(number, ()):
            if _outlived(memory, memory.branches[owned]):
                _end(draft, owned)


def _outlived(memory: Memory, branch: Branch) -> bool:
    """Whether the turn that called this agent is over: only one in the background goes on after it."""
    if branch.owner is None or not branch.call or branch.call in memory.background:
        return False
    owner = memory.branches[branch.owner[0]]
    return branch.call in memory.answered or owner.last_typed > branch.owner[1] > 0 or owner.state in _QUIET


def _end(draft: Draft, number: int) -> None:
    """The agent's conversation is idle, and so are those of the agents that it called."""
    if number < 0 or draft.memory.branches[number].state in _QUIET:
        return
    draft.change(number).waits = {}
    draft.state(number, (RunState.IDLE, ""))
    for owned in draft.memory.owned.get(number, ()):
        if draft.memory.branches[owned].call not in draft.memory.background:
            _end(draft, owned)


def _waiting(branch: Branch) -> tuple[RunState, str]:
    states = set(branch.waits.values())
    if RunState.ANSWER in states:
        return RunState.ANSWER, branch.why
    if states == {RunState.CHILD}:
        return RunState.CHILD, ""
    return RunState.RUNNING, ""


def _after_notice(branch: Branch, line: dict[str, Any]) -> tuple[RunState, str] | None:
    subtype = name_in(line, "subtype")
    if subtype == "turn_duration" or (subtype == "stop_hook_summary" and line.get("preventedContinuation") is not True):
        branch.waits = {}
        return RunState.IDLE, ""
    if subtype == "api_error":
        branch.cut_short = True
        attempt, most = line.get("retryAttempt"), line.get("maxRetries")
        if isinstance(attempt, int) and isinstance(most, int) and attempt >= most:
            return RunState.FAILED, "the model did not answer"
        return RunState.RUNNING, "the model did not answer; trying again"
    found = line.get("attachment")
    note: dict[str, Any] = found if isinstance(found, dict) else {}
    if note.get("type") == "hook_success" and name_in(note, "hookEvent") in _STOP_HOOKS:
        branch.waits = {}
        return RunState.IDLE, ""
    return None

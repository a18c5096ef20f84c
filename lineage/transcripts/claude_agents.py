"""Which call started which subagent of Claude Code. Pure.

Told, in this order of trust: the meta file's call id, progress lines and results of the call, a first line whose parent is
known, the same prompt. The meta file can lack the id or come late, and old versions have none.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from lineage.transcripts.blocks import text_of_blocks
from lineage.transcripts.claude_lines import content_of, name_in
from lineage.transcripts.claude_memory import AgentCall, AgentMeta, Memory
from lineage.transcripts.digests import digest
from lineage.transcripts.lines import Line
from lineage.transcripts.plan import Linked, Place, Step
from lineage.transcripts.tools import text_of

COMPACTS = "acompact-"  # begins the ids of agents that write the summary of a compaction
METADATA = "agent_metadata"  # the type of such a line
_TOOLS = frozenset({"Agent", "Task"})
_TAIL = re.compile(r"\bagentId: ([A-Za-z0-9_-]{1,80})")
_NOTICE = re.compile(r"<(?:agent|task)-id>([A-Za-z0-9_-]{1,80})</(?:agent|task)-id>.*?<status>completed</status>", re.S)


_AGENT_FILE = re.compile(r"(?:(?P<stem>.+?)/subagents/(?:.*/)?)?agent-(?P<agent>[^/]+)\.jsonl")


class Owner(msgspec.Struct, frozen=True, gc=False):
    """The entry that called; `ordinal` 0 when only the conversation is known."""

    conversation: int
    ordinal: int
    call: str = ""


def note_meta(memory: Memory, agent: str, meta: dict[str, Any]) -> None:
    call = name_in(meta, "toolUseId")
    if call and memory.agents.get(agent) != call:
        memory.put_agent(agent, call)
    found = AgentMeta(name_in(meta, "parentAgentId"), name_in(meta, "agentType"), name_in(meta, "description"))
    if memory.metas.get(agent) != found:
        memory.put_meta(agent, found)


def told_in(lines: Sequence[Line]) -> dict[str, Any] | None:
    """What the meta file says, where it comes as a line of the agent's own file: pushed sessions have no files beside it."""
    told = (line.value for line in reversed(lines) if line.value is not None)
    return next((value for value in told if value.get("type") == METADATA), None)


def note_progress(memory: Memory, line: dict[str, Any]) -> None:
    """Progress lines repeat what is in the agent's file; what they add is the link."""
    data = line.get("data")
    if isinstance(data, dict) and data.get("type") == "agent_progress":
        link(memory, name_in(data, "agentId"), name_in(line, "parentToolUseID"))


def note_call(memory: Memory, call: str, tool: str, given: dict[str, Any], conversation: int, ordinal: int) -> None:
    if tool in _TOOLS:
        prompt = text_of(given, "prompt")
        said = digest(prompt) if prompt else b""
        memory.put_agent_call(call, AgentCall(conversation, ordinal, said))
        if given.get("run_in_background") is True:
            memory.put_background(call)


def note_result(memory: Memory, line: dict[str, Any], call: str, content: Any, clock: str) -> None:
    """A result names the agent that it is of, and whether that one has ended."""
    if not call:
        return
    told = line.get("toolUseResult")
    facts: dict[str, Any] = told if isinstance(told, dict) else {}
    agent = name_in(facts, "agentId")
    if not agent and call in memory.agent_calls:
        found = _TAIL.search(text_of_blocks(content)[-400:])
        agent = found.group(1) if found else ""
    if agent:
        link(memory, agent, call)
        if facts.get("isAsync") is True or name_in(facts, "status") == "async_launched":
            memory.put_background(call)
        elif name_in(facts, "status") in ("completed", ""):
            memory.put_done(agent, clock)
    task = facts.get("task")
    if isinstance(task, dict) and name_in(task, "status") == "completed" and name_in(task, "task_id"):
        memory.put_done(name_in(task, "task_id"), clock)


def note_notice(memory: Memory, text: str, clock: str) -> None:
    """A background agent's end is told in a notice to the model."""
    for agent in _NOTICE.findall(text):
        memory.put_done(agent, clock)


def link(memory: Memory, agent: str, call: str) -> None:
    if agent and call and agent not in memory.agents:
        memory.put_agent(agent, call)


def owner_of(memory: Memory, agent: str, first: dict[str, Any]) -> Owner | None:
    """The call that started the agent, or none as long as the lines read so far do not tell."""
    call = memory.agents.get(agent, "")
    if call:
        return place_of(memory, call)
    above = memory.nodes.get(name_in(first, "parentUuid"))
    if above is not None:
        return Owner(above.conversation, above.ordinal)
    said = digest(text_of_blocks(content_of(first)))
    for name, found in memory.agent_calls.items():
        if found.said == said and name not in memory.claimed:
            return Owner(found.conversation, found.ordinal, name)
    return None


def likely_owner(memory: Memory, agent: str, session: int) -> Owner | None:
    """Where nothing tells: the agent above it, or the newest call of its session that no agent claims, or just the session."""
    parent = memory.metas.get(agent, AgentMeta()).parent
    above = memory.by_key.get(agent_key(parent)) if parent else None
    if above is not None:
        return Owner(above, 0)
    if session < 0:
        return None
    for name, found in reversed(memory.agent_calls.items()):
        if found.conversation == session and not found.said and name not in memory.claimed:
            return Owner(found.conversation, found.ordinal, name)
    return Owner(session, 0)


def place_of(memory: Memory, call: str) -> Owner | None:
    """Where a call stands, if its line has been read."""
    found = memory.agent_calls.get(call)
    if found is not None:
        return Owner(found.conversation, found.ordinal, call)
    if call in memory.asked:
        _, conversation, ordinal = memory.asked[call]
        return Owner(conversation, ordinal, call)
    answered = memory.answered.get(call)
    return Owner(answered.conversation, answered.call_ordinal, call) if answered is not None else None


def late_links(memory: Memory) -> list[Step]:
    """Links of agents that began before their call was known."""
    steps: list[Step] = []
    for number, branch in enumerate(memory.branches):
        if not branch.agent or branch.owner is None or branch.owner[1] or not branch.shown:
            continue
        found = place_of(memory, memory.agents.get(branch.agent, ""))
        if found is not None and found.ordinal and found.conversation != number:
            branch.owner, branch.call = (found.conversation, found.ordinal), found.call
            memory.put_branch(number, branch)
            owner = Place(memory.branches[found.conversation].key, found.ordinal)
            steps.append(Linked(key=branch.key, owner=owner, call=found.call))
    return steps


def agent_key(agent: str) -> str:
    return f"agent:{agent}"


def agent_in(name: str) -> str:
    """The agent id of an agent file's name, or an empty text for a main file."""
    found = _AGENT_FILE.fullmatch(name)
    return found["agent"] if found else ""


def stem_of(name: str) -> str:
    """What a file's folder or name calls its session."""
    found = _AGENT_FILE.fullmatch(name)
    return (found["stem"] or "") if found else name.removesuffix(".jsonl")

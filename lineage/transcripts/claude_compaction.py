"""Compactions in Claude Code files: a boundary line, then a summary that the model's context begins anew with (T2). Pure.

Both become one entry. Lines that a compaction keeps stay where they are; the model reads them after the summary.
"""

from typing import Any

import msgspec

from lineage.transcripts.claude_draft import Draft
from lineage.transcripts.claude_lines import Sort, name_in
from lineage.transcripts.claude_memory import MODEL, OMITTED, Node
from lineage.transcripts.lines import Line
from lineage.transcripts.plan import Place, PlannedEntry, Source

# The names on disk, and those of the vendor's stream.
_FACTS = {"trigger": ("trigger",), "before": ("preTokens", "pre_tokens"), "after": ("postTokens", "post_tokens")}


def hold_boundary(draft: Draft, number: int, line: Line, value: dict[str, Any], uuid: str) -> None:
    """A compaction begins. Its facts wait for the summary."""
    flush_boundary(draft, number)
    branch = draft.change(number)
    told = value.get("compactMetadata")
    facts: dict[str, Any] = told if isinstance(told, dict) else {}
    data: dict[str, Any] = {}
    for key, names in _FACTS.items():
        for name in names:
            if isinstance(facts.get(name), int) or name_in(facts, name):
                data[key] = facts[name]
    branch.boundary = PlannedEntry(
        kind="compaction",
        source=Source(line.offset, line.size),
        data=data | draft.changed_facts(value),
        time=draft.file.time,
        head=True,
        uuid=uuid,
    )
    messages, segment = facts.get("preservedMessages"), facts.get("preservedSegment")
    branch.kept = []
    if isinstance(messages, dict) and isinstance(messages.get("uuids"), list):
        branch.kept = [name for name in messages["uuids"] if isinstance(name, str)]
    elif isinstance(segment, dict):
        branch.kept = [name_in(segment, "headUuid"), "", name_in(segment, "tailUuid")]


def flush_boundary(draft: Draft, number: int) -> None:
    """No summary came for the last boundary, if there was one: it is an entry without messages."""
    branch = draft.memory.branches[number]
    entry, branch.boundary, branch.kept = branch.boundary, None, []
    if entry is not None:
        draft.append(number, entry, Sort.BOUNDARY)


def with_boundary(draft: Draft, number: int, entry: PlannedEntry) -> PlannedEntry:
    """The summary's entry with the facts of its boundary and with what it keeps."""
    branch = draft.change(number)
    keeps, rest = _kept(draft, number)
    for ordinal in rest:
        draft.memory.put_flag(number, ordinal, OMITTED)
    data = (branch.boundary.data if branch.boundary else {}) | entry.data
    branch.boundary = None
    omits = entry.omits + tuple(Place(branch.key, ordinal) for ordinal in rest)
    return msgspec.structs.replace(entry, data=data, head=True, keeps=keeps, omits=omits)


def keep_on(draft: Draft, number: int, ordinal: int, uuid: str) -> None:
    """Lines that a compaction keeps stand after its summary from now on: what hangs under them is no branch."""
    branch = draft.change(number)
    for name in branch.kept:
        if name in draft.memory.nodes:
            draft.memory.put_node(name, Node(number, ordinal, uuid))
    branch.kept = []


def _kept(draft: Draft, number: int) -> tuple[Place | None, tuple[int, ...]]:
    """(the first entry that the model goes on reading, the entries after it that it does not)."""
    memory, branch = draft.memory, draft.memory.branches[number]
    nodes = [memory.nodes[uuid] for uuid in branch.kept if uuid in memory.nodes]
    kept = {node.ordinal for node in nodes if node.conversation == number and node.ordinal}
    if not kept:
        return None, ()
    if "" in branch.kept:
        kept = set(range(min(kept), max(kept) + 1))
    flags = memory.flags[number]
    after = range(min(kept) + 1, len(flags) + 1)
    rest = tuple(n for n in after if n not in kept and flags[n - 1] & MODEL and not flags[n - 1] & OMITTED)
    return Place(branch.key, min(kept)), rest

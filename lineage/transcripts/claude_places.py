"""Where a line of a Claude Code file goes: the rules for replays, retries and real branches (T2). Pure; `claude.py` carries out."""

from typing import Any

import msgspec

from lineage.transcripts.blocks import blocks_of, text_of_blocks
from lineage.transcripts.claude_lines import Sort, content_of, message_of, name_in
from lineage.transcripts.claude_memory import MODEL, OMITTED, RESULT, FileState, Memory, Node, Typed
from lineage.transcripts.digests import digest
from lineage.transcripts.retries import REMEMBERED, says_again
from lineage.transcripts.tools import flat, text_of

ROOT, MISSING = "^", "?"  # anchors of lines without a parent, and of lines whose parent was never written
REAL = frozenset({Sort.PROMPT, Sort.RESULT, Sort.ASSISTANT, Sort.SUMMARY})  # a conversation begins with one of these


class Spot(msgspec.Struct, frozen=True, gc=False):
    """At the end of `conversation`; or in a new branch that forks after `fork` (conversation, ordinal)."""

    conversation: int
    fork: tuple[int, int] | None = None
    retry: bool = False
    omits: tuple[int, ...] = ()  # ordinals of the conversation that the model no longer reads


def spot_of(memory: Memory, file: FileState, sort: Sort, line: dict[str, Any], parent: Node) -> Spot:
    """Where the line goes, given the place of its parent."""
    branch = memory.branches[parent.conversation]
    if branch.agent:
        return Spot(parent.conversation)
    if file.fork and sort in REAL and not has_home(memory, file):
        return Spot(parent.conversation, fork=_after_results(memory, parent))
    if sort == Sort.ASSISTANT:
        return Spot(parent.conversation, omits=_superseded(memory, line, parent.conversation))
    if sort != Sort.PROMPT:
        return Spot(parent.conversation)
    siblings = memory.typed.get(parent.anchor, [])
    if not siblings:
        later_turn = branch.last_typed > parent.ordinal
        return Spot(parent.conversation, fork=_after_results(memory, parent) if later_turn else None)
    text = said_text(line)
    again = next((typed for typed in reversed(siblings) if _is_retry(memory, typed, text)), None)
    if again is not None:
        return Spot(again.conversation, retry=True, omits=_read_from(memory, again.conversation, again.ordinal))
    if parent.anchor.startswith((ROOT, MISSING)):
        return Spot(parent.conversation, fork=(siblings[0].conversation, siblings[0].ordinal - 1))
    return Spot(parent.conversation, fork=_after_results(memory, parent))


def has_home(memory: Memory, file: FileState) -> bool:
    """Whether the file has begun a conversation of its own, beyond notices before the first prompt."""
    return file.home >= 0 and memory.branches[file.home].shown


def replay_keys(sort: Sort, line: dict[str, Any], agent: str) -> list[str]:
    """What this line can be known by again when it is written anew under another uuid. Ids are anybody's; a clock and a text
    only this session's or agent's, since several are often started at the same moment with the same words."""
    clock = name_in(line, "timestamp")
    whose = f"{name_in(line, 'sessionId')}/{agent}"
    if sort == Sort.ASSISTANT:
        message = message_of(line)
        name = name_in(message, "id")
        return [f"{name}:{_block_key(block)}" for block in blocks_of(message.get("content"))] if name else []
    if sort == Sort.RESULT:
        calls = (
            name_in(block, "tool_use_id") for block in blocks_of(content_of(line)) if block.get("type") == "tool_result"
        )
        return [f"{call}@{clock}" for call in calls if call] if clock else []
    if not clock or sort in (Sort.PROGRESS, Sort.BOUNDARY):
        return []
    if sort == Sort.QUIET:
        text = text_of(line, "content")
        return [f"{whose}|{clock}|{digest(name_in(line, 'subtype') + text).hex()}"] if text else []
    return [f"{whose}|{clock}|{digest(said_text(line)).hex()}"]


def said_text(line: dict[str, Any]) -> str:
    """What a prompt says, white space collapsed, as far as it is remembered; images count by their number."""
    content = content_of(line)
    images = sum(block.get("type") in ("image", "document") for block in blocks_of(content))
    return flat(("[image] " * images) + text_of_blocks(content), REMEMBERED)


def _is_retry(memory: Memory, earlier: Typed, text: str) -> bool:
    """Whether a prompt is `earlier` sent again, and nothing was asked after that."""
    branch, flags = memory.branches[earlier.conversation], memory.flags[earlier.conversation]
    if branch.last_typed != earlier.ordinal:
        return False
    return says_again(text, earlier.text, unfinished=branch.cut_short or len(flags) == earlier.ordinal)


def _block_key(block: dict[str, Any]) -> str:
    kind = str(block.get("type"))
    name = name_in(block, "id")
    if name:
        return name
    return digest(f"{kind}:{text_of(block, 'text')}:{text_of(block, 'thinking')}:{text_of(block, 'signature')}").hex()


def _after_results(memory: Memory, parent: Node) -> tuple[int, int]:
    """The fork entry: the parent, and the results of parallel calls that were written right after it."""
    flags, ordinal = memory.flags[parent.conversation], parent.ordinal
    while ordinal < len(flags) and flags[ordinal] & RESULT:
        ordinal += 1
    return parent.conversation, ordinal


def _read_from(memory: Memory, conversation: int, first: int) -> tuple[int, ...]:
    """Entries from `first` on that the model still reads: those of an attempt that failed."""
    flags = memory.flags[conversation]
    return tuple(n for n in range(first, len(flags) + 1) if flags[n - 1] & MODEL and not flags[n - 1] & OMITTED)


def _superseded(memory: Memory, line: dict[str, Any], conversation: int) -> tuple[int, ...]:
    """Entries of an answer that this one says it takes the place of."""
    named = line.get("supersedesUuids")
    nodes = (memory.nodes.get(uuid) for uuid in named if isinstance(uuid, str)) if isinstance(named, list) else ()
    ordinals = {
        node.ordinal for node in nodes if node is not None and node.conversation == conversation and node.ordinal
    }
    flags = memory.flags[conversation]
    return tuple(n for n in sorted(ordinals) if flags[n - 1] & MODEL and not flags[n - 1] & OMITTED)

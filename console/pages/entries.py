"""Entries as a page shows them: a document of prompts, answers with their calls, and labelled rules. Pure, one pass.

Shapes of `model` are the Messages API's; those of `data` are in `lineage/transcripts/README.md` and DESIGN (L15 to L20).
"""

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString

from console.json_text import storable
from console.markdown import rendered
from console.pages.calls import Call, call_of, without_escapes
from console.pages.rules import Rule, rule_of
from console.shown import AUTHOR_HUES, hue
from documents.attachments.limits import FILENAME_CHARS
from documents.attachments.names import is_issued
from lineage.models import Entry

# Prose that stands in the page unasked: a long answer has some 8,000 characters; ten times that is a pasted file.
PROSE_CHARACTERS = 20_000
WHOLE_PROSE_CHARACTERS = 400_000  # Markdown of this size takes about a second


@dataclass(frozen=True, kw_only=True)
class Author:
    name: str
    hue: int
    agent: bool


@dataclass(frozen=True, kw_only=True)
class Prose:
    html: SafeString
    shown: int  # characters shown of `characters`
    characters: int

    @property
    def cut(self) -> bool:
        return self.shown < self.characters


@dataclass(frozen=True, kw_only=True)
class Picture:
    url: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Block:
    """One part of an answer or prompt; exactly one of the fields beside `sort` is set."""

    sort: str  # "prose", "thinking", "calls", "picture", "files", "say"
    prose: Prose | None = None
    calls: tuple[Call, ...] = ()
    picture: Picture | None = None
    files: tuple[tuple[str, str], ...] = ()  # issued name, and the person's
    say: str = ""


@dataclass(kw_only=True)
class Unit:
    """What one article or rule shows. `seqs` are all entries that it stands for, results of its calls included."""

    sort: str  # "prompt", "answer", "result", "rule", "quiet"
    conversation: int
    seq: int
    time: datetime
    author: Author
    blocks: list[Block] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    continues: bool = False  # the author of the unit above goes on
    inherited: bool = False
    border: bool = False  # the first own entry of a fork stands here
    rule: Rule | None = None
    rule_prose: Prose | None = None
    quiet: list[Rule] = field(default_factory=list)

    @property
    def last(self) -> int:
        return max(self.seqs)

    @property
    def tight(self) -> bool:
        """Only calls that go on: they join the list above."""
        return self.continues and all(block.sort == "calls" for block in self.blocks)

    @property
    def quiet_lines(self) -> list[tuple[int, Rule]]:
        return list(zip(self.seqs, self.quiet, strict=True))


def units_of(
    entries: Sequence[Entry], *, conversation: int, at: int = 0, source: str = "", whole: bool = False
) -> list[Unit]:
    """The units of consecutive entries. Results move into the call that they answer, if it is among them.

    `at` is the fork entry of the conversation: the unit after it stands below a border.
    """
    results = _results(entries)
    asked = {call for entry in entries for call in _asked(entry)}
    units: list[Unit] = []
    holder: dict[str, Unit] = {}
    for entry in entries:
        answered = [id for id in _answered(entry) if id in asked]
        if answered and not _lone(entry, asked):
            for call in answered:
                if call in holder:
                    holder[call].seqs.append(entry.seq)
            continue
        unit = _unit(entry, results, conversation=conversation, source=source, whole=whole)
        unit.border = at > 0 and entry.seq == at + 1
        for call in _asked(entry):
            holder[call] = unit
        _place(units, unit)
    return units


def answered_elsewhere(entries: Sequence[Entry]) -> bool:
    """Whether a result stands here whose call does not."""
    asked = {call for entry in entries for call in _asked(entry)}
    return any(call not in asked for entry in entries if entry.kind == "tool_result" for call in _answered(entry))


@dataclass(frozen=True, kw_only=True)
class Result:
    """A tool result: its block, what `data` tells of it, and the entry that brought it."""

    block: dict[str, Any]
    note: dict[str, Any]
    seq: int
    images: tuple[int, ...]


def messages_of(entry: Entry) -> list[dict[str, Any]]:
    """The messages, as text that can be written to a page: unpaired surrogates become U+FFFD."""
    found = _loaded(entry.model) if entry.model else []
    return [message for message in found if isinstance(message, dict)] if isinstance(found, list) else []


def data_of(entry: Entry) -> dict[str, Any]:
    found = _loaded(entry.data)
    return found if isinstance(found, dict) else {}


def blocks_of(entry: Entry) -> list[dict[str, Any]]:
    """The content blocks of all its messages; a string is one text block."""
    blocks: list[dict[str, Any]] = []
    for message in messages_of(entry):
        content = message.get("content")
        if isinstance(content, str):
            blocks.append({"type": "text", "text": content})
        elif isinstance(content, list):
            blocks += [block for block in content if isinstance(block, dict)]
    return blocks


def author_of(entry: Entry, source: str) -> Author:
    """Who wrote it; imported entries have no actor, so the program that wrote them is named."""
    if entry.author is not None:
        return Author(name=entry.author.name, hue=hue(entry.author.pk), agent=entry.author.kind != "person")
    if entry.kind == "user":
        return Author(name="user", hue=1 + zlib.crc32(b"user") % AUTHOR_HUES, agent=False)
    name = SOURCES.get(source, source or "console")
    return Author(name=name, hue=1 + zlib.crc32(name.encode()) % AUTHOR_HUES, agent=True)


SOURCES = {"claude": "Claude", "codex": "Codex", "pi": "pi", "console": "agent", "http": "agent"}


def _loaded(text: str) -> Any:
    loaded = json.loads(text)
    return _storable(loaded) if "\\ud" in text or "\\uD" in text or "\\u0000" in text else loaded


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(str(key)): _storable(item) for key, item in value.items()}
    return value


def _asked(entry: Entry) -> list[str]:
    if entry.kind != "assistant" or '"tool_use"' not in entry.model:
        return []
    return [str(block.get("id")) for block in blocks_of(entry) if block.get("type") == "tool_use"]


def _answered(entry: Entry) -> list[str]:
    if '"tool_result"' not in entry.model:
        return []
    return [str(block.get("tool_use_id")) for block in blocks_of(entry) if block.get("type") == "tool_result"]


def _lone(entry: Entry, asked: set[str]) -> bool:
    """Whether it shows more than results of calls that stand here."""
    return any(
        block.get("type") != "tool_result" or str(block.get("tool_use_id")) not in asked for block in blocks_of(entry)
    )


def _results(entries: Iterable[Entry]) -> dict[str, Result]:
    found: dict[str, Result] = {}
    for entry in entries:
        if '"tool_result"' not in entry.model:
            continue
        notes = {str(note.get("id")): note for note in _listed(data_of(entry), "results")}
        image = 0
        for block in blocks_of(entry):
            if block.get("type") != "tool_result":
                continue
            count = _images_in(block)
            call = str(block.get("tool_use_id"))
            images = tuple(range(image, image + count))
            found[call] = Result(block=block, note=notes.get(call, {}), seq=entry.seq, images=images)
            image += count
    return found


def _images_in(block: dict[str, Any]) -> int:
    content = block.get("content")
    return sum(_is_image(part) for part in content) if isinstance(content, list) else 0


def _is_image(block: Any) -> bool:
    source = block.get("source") if isinstance(block, dict) and block.get("type") == "image" else None
    return isinstance(source, dict) and source.get("type") == "base64"


def _listed(data: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = data.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _unit(entry: Entry, results: dict[str, Result], *, conversation: int, source: str, whole: bool) -> Unit:
    unit = Unit(
        sort="rule",
        conversation=entry.conversation_id,
        seq=entry.seq,
        time=entry.time,
        author=author_of(entry, source),
        seqs=[entry.seq],
        inherited=entry.conversation_id != conversation,
    )
    data = data_of(entry)
    if entry.kind == "user":
        unit.sort = "prompt"
    elif entry.kind == "assistant":
        unit.sort = "answer"
    elif entry.kind == "tool_result":
        unit.sort = "result"
    else:
        unit.rule = rule_of(entry.kind, data, _text(entry), whole=whole)
        if unit.rule.quiet:
            unit.sort, unit.quiet, unit.rule = "quiet", [unit.rule], None
        elif unit.rule.prose:
            unit.rule_prose = prose_of(unit.rule.prose, whole=whole)
        return unit
    unit.blocks = _blocks(entry, data, results, whole=whole)
    return unit


def _text(entry: Entry) -> str:
    texts = (block.get("text") for block in blocks_of(entry) if block.get("type") == "text")
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _blocks(entry: Entry, data: dict[str, Any], results: dict[str, Result], *, whole: bool) -> list[Block]:
    notes = {str(note.get("id")): note for note in _listed(data, "calls")}
    found: list[Block] = []
    image = 0
    for block in blocks_of(entry):
        sort = block.get("type")
        if sort == "text" and isinstance(block.get("text"), str) and block["text"].strip():
            found.append(Block(sort="prose", prose=prose_of(block["text"], whole=whole)))
        elif sort == "thinking" and str(block.get("thinking") or "").strip():
            found.append(Block(sort="thinking", prose=prose_of(str(block["thinking"]), whole=whole)))
        elif sort in {"thinking", "redacted_thinking"}:
            found.append(Block(sort="say", say="Thought, without showing it"))
        elif sort == "tool_use":
            id = str(block.get("id"))
            call = call_of(block, notes.get(id, {}), _told(entry, results.get(id)), whole=whole)
            _add_call(found, call)
        elif _is_image(block):
            found.append(Block(sort="picture", picture=_picture(entry, image)))
            image += 1
        elif sort == "tool_result":
            id = str(block.get("tool_use_id"))
            _add_call(found, call_of({"id": id}, {}, _told(entry, results.get(id)), whole=whole))
            image += _images_in(block)
        elif sort != "text":
            found.append(Block(sort="say", say=f"A block of type {storable(str(sort))[:60]}, kept but not shown"))
    if files := _files(data):
        found.append(Block(sort="files", files=files))
    for name in data.get("unknown") or ():
        found.append(Block(sort="say", say=f"A block of type {str(name)[:60]}, kept but not shown"))
    if data.get("aborted"):
        found.append(Block(sort="say", say="Aborted here; the model does not read this answer again"))
    if data.get("failed"):
        found.append(Block(sort="say", say=f"Failed: {str(data['failed'])[:300]}"))
    return found


def _files(data: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The attachments that the entry brought. Only what looks issued: a name becomes part of an address."""
    given = [(str(item.get("name")), str(item.get("filename"))) for item in _listed(data, "attachments")]
    return tuple((name, filename[:FILENAME_CHARS]) for name, filename in given if is_issued(name))


def _told(entry: Entry, result: Result | None) -> tuple[dict[str, Any], dict[str, Any], int, tuple[str, ...]] | None:
    if result is None:
        return None
    pictures = tuple(image_url(entry.conversation_id, result.seq, n) for n in result.images)
    return result.block, result.note, result.seq, pictures


def image_url(conversation: int, seq: int, number: int) -> str:
    return f"/conversations/{conversation}/entries/{seq}/images/{number}/"


def _picture(entry: Entry, number: int) -> Picture:
    return Picture(url=image_url(entry.conversation_id, entry.seq, number), name=f"image {number + 1} of {entry.seq}")


def _add_call(blocks: list[Block], call: Call) -> None:
    """Calls that follow each other share one list."""
    if blocks and blocks[-1].sort == "calls":
        blocks[-1] = Block(sort="calls", calls=(*blocks[-1].calls, call))
    else:
        blocks.append(Block(sort="calls", calls=(call,)))


def prose_of(text: str, *, whole: bool = False) -> Prose:
    """Markdown as HTML, the beginning of it where it is long: cut at the end of a line."""
    text = without_escapes(text).strip("\n")
    limit = WHOLE_PROSE_CHARACTERS if whole else PROSE_CHARACTERS
    shown = text
    if len(text) > limit:
        end = text.rfind("\n", limit // 2, limit)
        shown = text[: end if end > 0 else limit]
    return Prose(html=rendered(storable(shown)), shown=len(shown), characters=len(text))


def _place(units: list[Unit], unit: Unit) -> None:
    """Append; runs of quiet entries become one, and an author is named once for what follows without a break."""
    above = units[-1] if units else None
    if above is not None and above.sort == unit.sort == "quiet" and not unit.border:
        above.quiet += unit.quiet
        above.seqs += unit.seqs
        return
    if above is not None and unit.sort in {"answer", "result"} and above.sort in {"answer", "result"}:
        unit.continues = above.author == unit.author and not unit.border
    units.append(unit)

"""What the model reads at an entry (L4, L5). Pure: lines in, messages out; `lineage.loading` finds the lines.

A context is the contributions of its lines, joined and repaired:

- it begins with the newest visible head entry, then goes from the seq which that names to the tail;
- for each line the newest edit of it wins: it is omitted, or other messages are read in its place;
- aborted and failed answers and lines without messages are left out;
- lines of one answer (one message id) are one message, adjacent messages of one role are one message;
- an answer that calls tools is followed by the results in call order. A call without a result gets an error result,
  a result without a call is dropped.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

Message = dict[str, Any]
Block = dict[str, Any]

INTERRUPTED = "Interrupted: this call left no result. Whether it took effect is unknown."
# The Messages API wants a user message first; an answer whose question lies before a head stays readable.
OPENING = "(The question to this answer lies before the part of the conversation that is shown here.)"


class Line(NamedTuple):
    """One entry as the context needs it. `model` is the stored JSON text, `left_out` an aborted or failed answer."""

    seq: int
    model: str
    message_id: str = ""
    left_out: bool = False
    edits: bool = False  # it edits others


@dataclass(frozen=True, kw_only=True)
class Context:
    """Messages in the Messages shape. `head` are those of the head entry: they stay when older ones are trimmed (A1)."""

    head: list[Message]
    rest: list[Message]

    @property
    def messages(self) -> list[Message]:
        """All of it: roles alternate, beginning with a user message."""
        return joined_messages([*self.head, *self.rest])


class _Said(msgspec.Struct, gc=False):
    """A stored message. Not followed by the garbage collector: ten thousand at once would make it walk the whole heap."""

    role: str
    content: str | list[dict[str, Any]]


_decode = msgspec.json.Decoder(list[list[_Said]]).decode


class _Slot:
    """A message that is being put together. `calls` are the ids of its tool calls, in order."""

    __slots__ = ("calls", "content", "results", "role", "seq")

    def __init__(self, role: str, content: list[Any], seq: int) -> None:
        self.seq = seq  # of the first line in it
        self.role = role
        self.content: list[str | Block] = content
        self.calls: list[str] | None = None
        self.results: dict[str, Block] | None = None


def derive_context(*, head: Line | None, lines: Sequence[Line], edits: Mapping[int, str | None]) -> Context:
    """The context of these lines, ascending by seq. `head` is the head entry; it may lie among the lines and counts once.

    `edits` has the newest edit per target seq: none omits it, JSON text is read in its place.
    """
    before, after = _derived(head, lines, edits)
    return Context(
        head=joined_messages((message for _, message in before), opening=False),
        rest=joined_messages((message for _, message in after), opening=False),
    )


Parts = list[tuple[int, Message]]


def derive_parts(*, head: Line | None, lines: Sequence[Line], edits: Mapping[int, str | None]) -> tuple[Parts, Parts]:
    """The same before messages of one role are joined: those of the head, then the rest, each with the seq of its first line."""
    before, after = _derived(head, lines, edits)
    return list(before), list(after)


def _derived(
    head: Line | None, lines: Sequence[Line], edits: Mapping[int, str | None]
) -> tuple[Iterable[tuple[int, Message]], Iterable[tuple[int, Message]]]:
    """Both parts, put together while they are read: ten thousand pairs are never held."""
    building = _Building()
    if head is not None:
        building.add([head], edits)
        lines = [line for line in lines if line.seq != head.seq]
    border = len(building.slots)
    if border:
        building.slots.append(_Slot("", [], 0))  # nothing joins over the border: `head` and `rest` are given apart
    building.add(lines, edits)
    return _emitted(building.slots[:border]), _emitted(building.slots[border:])


def joined_messages(messages: Iterable[Message], *, opening: bool = True) -> list[Message]:
    """Adjacent messages of one role become one (L5). With `opening` a leading answer gets a user message before it."""
    out: list[Message] = []
    for message in messages:
        if out and out[-1]["role"] == message["role"]:
            out[-1] = {
                "role": message["role"],
                "content": [*as_blocks(out[-1]["content"]), *as_blocks(message["content"])],
            }
        else:
            out.append(message)
    if opening and out and out[0]["role"] == "assistant":
        out.insert(0, {"role": "user", "content": OPENING})
    return out


def as_blocks(content: Any) -> list[Block]:
    """The content of a message as blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def answer_text(messages: Iterable[Message]) -> str:
    """The text parts of the assistant messages among these, joined by newlines, trimmed; "" when there is none."""
    parts: list[str] = []
    for message in messages:
        if message.get("role") == "assistant":
            parts += [str(b.get("text", "")) for b in as_blocks(message.get("content", "")) if b.get("type") == "text"]
    return "\n".join(parts).strip()


def parse_messages(text: str) -> list[Message]:
    """Stored messages. msgspec is fast but refuses escaped unpaired surrogates, which R10 keeps."""
    if not text:
        return []
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        found = json.loads(text)
    return [m for m in found if isinstance(m, dict)] if isinstance(found, list) else []


class _Building:
    """The messages so far, the newest call of each id, and the answers by message id. Ten thousand lines pass here in
    a few milliseconds, so the plain cases come first."""

    def __init__(self) -> None:
        self.slots: list[_Slot] = []
        self.calls: dict[str, _Slot] = {}
        self.answers: dict[str, _Slot] = {}

    def add(self, lines: Sequence[Line], edits: Mapping[int, str | None]) -> None:
        """Add lines in order."""
        if edits:
            lines = [_edited(line, edits[line.seq]) if line.seq in edits else line for line in lines]
        read = [line for line in lines if line.model and not line.left_out]
        slots, answers = self.slots, self.answers
        for line, messages in zip(read, _parsed([line.model for line in read]), strict=True):
            for message in messages:
                role, content = message.role, message.content
                if not slots or slots[-1].role != role:  # the plain cases: a text after the other side's
                    if isinstance(content, str):
                        if content and not content.isspace() and line.message_id not in answers:
                            slot = _Slot(role, [content], line.seq)
                            slots.append(slot)
                            if line.message_id and role == "assistant":
                                answers[line.message_id] = slot
                            continue
                    elif role == "assistant" and len(content) == 1 and line.message_id not in answers:
                        block = content[0]
                        text = block.get("text") if block.get("type") == "text" else None
                        if isinstance(text, str) and text and not text.isspace():
                            slot = _Slot(role, content, line.seq)
                            slots.append(slot)
                            if line.message_id:
                                answers[line.message_id] = slot
                            continue
                kept = _kept(content)
                if not kept:
                    continue
                if role == "assistant":
                    self._answer(kept, line.message_id, line.seq)
                else:
                    self._said(kept, line.seq)

    def _answer(self, content: list[str | Block], message_id: str, seq: int) -> None:
        slot = self.answers.get(message_id) if message_id else None
        if slot is None:
            last = self.slots[-1] if self.slots else None
            if last is not None and last.role == "assistant" and last.calls is None:
                slot = last
        if slot is None:
            slot = _Slot("assistant", content, seq)
            self.slots.append(slot)
        else:
            slot.content += content
        if message_id:
            self.answers[message_id] = slot
        for block in content:
            if not isinstance(block, str) and block.get("type") == "tool_use":
                call = str(block.get("id", ""))
                slot.calls = slot.calls or []
                slot.calls.append(call)
                self.calls[call] = slot  # call ids repeat: a result belongs to the newest call of its id

    def _said(self, content: list[str | Block], seq: int) -> None:
        said = content
        if any(not isinstance(block, str) and block.get("type") == "tool_result" for block in content):
            said = []
            for block in content:
                if isinstance(block, str) or block.get("type") != "tool_result":
                    said.append(block)
                elif (asker := self.calls.get(call := str(block.get("tool_use_id", "")))) is not None:
                    asker.results = asker.results or {}
                    asker.results.setdefault(call, block)
        if not said:
            return
        last = self.slots[-1] if self.slots else None
        if last is not None and last.role == "user":
            last.content += said
        else:
            self.slots.append(_Slot("user", said, seq))


def _edited(line: Line, text: str | None) -> Line:
    """The line as its newest edit has it; an edit also brings back an answer that was left out."""
    return line._replace(model=text or "", left_out=False)


def _parsed(texts: list[str]) -> list[list[_Said]]:
    """The messages of each text. One call of the decoder for all; one by one where that fails."""
    try:
        found = _decode(f"[{','.join(texts)}]")
    except (msgspec.DecodeError, UnicodeEncodeError):
        found = []
    if len(found) == len(texts):
        return found
    return [
        [
            _Said(role=str(message.get("role")), content=content)
            for message in parse_messages(text)
            if isinstance(content := message.get("content"), str | list)
        ]
        for text in texts
    ]


def _kept(content: str | list[Block]) -> list[str | Block]:
    """Parts of a content without blank text, which the API refuses."""
    if isinstance(content, str):
        return [content] if content and not content.isspace() else []
    return [
        block
        for block in content
        if isinstance(block, dict)
        and (
            block.get("type") != "text" or (isinstance(text := block.get("text"), str) and text and not text.isspace())
        )
    ]


def _emitted(slots: Iterable[_Slot]) -> Iterable[tuple[int, Message]]:
    for slot in slots:
        content = slot.content
        if not slot.role:
            continue
        if slot.calls is None and len(content) == 1:
            yield slot.seq, {"role": slot.role, "content": content[0] if isinstance(content[0], str) else content}
            continue
        yield (
            slot.seq,
            {
                "role": slot.role,
                "content": [{"type": "text", "text": part} if isinstance(part, str) else part for part in content],
            },
        )
        if slot.calls is not None:
            results = slot.results or {}
            answers = [results.get(c) or _interrupted(c) for c in dict.fromkeys(slot.calls)]
            yield slot.seq, {"role": "user", "content": answers}


def _interrupted(call: str) -> Block:
    return {"type": "tool_result", "tool_use_id": call, "content": INTERRUPTED, "is_error": True}

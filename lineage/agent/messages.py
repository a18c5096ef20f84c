"""Messages as a request carries them: lists of blocks, roles in turn, nothing that the Messages API would refuse.

Pure. What stands in a conversation is in `lineage.context`; this module only makes it fit to be sent.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

RESULT_CHARACTERS = 32 * 1024
"""Characters of one tool result: an eighth of the request, so that no single call can push the conversation out."""

Block = dict[str, Any]

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message. `seq` is the number of the first entry that it comes from."""

    role: str
    content: list[Block]
    seq: int

    @property
    def calls(self) -> bool:
        return any(block.get("type") == "tool_use" for block in self.content)

    @property
    def answers_calls(self) -> bool:
        return any(block.get("type") == "tool_result" for block in self.content)

    @property
    def says_more(self) -> bool:
        """True when a person's words, or anything else than tool results, stand in it."""
        return any(block.get("type") != "tool_result" for block in self.content)

    @cached_property
    def may_hold_images(self) -> bool:
        """False for nearly all: what is asked of each message of a request several times, images in results included."""
        return any(
            block.get("type") not in {"text", "tool_use"} and not isinstance(block.get("content"), str)
            for block in self.content
        )

    @cached_property
    def encoded(self) -> bytes:
        """As it stands in the body."""
        return encode({"role": self.role, "content": self.content})


def encode(value: Any) -> bytes:
    """Compact JSON in UTF-8, the form in which a body is sent. An unpaired surrogate becomes U+FFFD: no wire carries it."""
    text = _encoder.encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("�", text).encode()


def as_blocks(content: Any) -> list[Block]:
    """The content as blocks that may be sent: no blank text, which the API refuses, and no unsigned thinking."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    return [block for given in content or () if isinstance(given, dict) and (block := _sendable(given)) is not None]


def joined(messages: Iterable[Message]) -> list[Message]:
    """Adjacent messages of one role become one, empty ones go: roles alternate as the Messages API wants (L5)."""
    found: list[Message] = []
    for message in messages:
        if not message.content:
            continue
        if found and found[-1].role == message.role:
            last = found[-1]
            found[-1] = Message(role=last.role, content=[*last.content, *message.content], seq=last.seq)
        else:
            found.append(message)
    return found


def _sendable(block: Block) -> Block | None:
    kind = block.get("type")
    if kind == "text":
        return block if str(block.get("text", "")).strip() else None
    if kind == "thinking":  # a provider takes back only thinking that it signed
        return block if block.get("signature") else None
    if kind == "tool_result":
        return _bounded_result(block)
    return block


def _bounded_result(block: Block) -> Block:
    """The result with at most `RESULT_CHARACTERS` of text, and a sentence when some was left out (A1)."""
    content = block.get("content")
    if isinstance(content, str):
        if len(content) <= RESULT_CHARACTERS:
            return block
        return {**block, "content": f"{content[:RESULT_CHARACTERS]}\n\n{_left_out(len(content))}"}
    if not isinstance(content, list):
        return block
    parts = [part for part in content if isinstance(part, dict) and _is_said(part)]
    total = sum(len(part["text"]) for part in parts if part.get("type") == "text")
    if total <= RESULT_CHARACTERS:
        return block if len(parts) == len(content) else {**block, "content": parts}
    room = RESULT_CHARACTERS
    bounded: list[Block] = []
    for part in parts:
        if part.get("type") != "text":
            bounded.append(part)
        elif room > 0:
            bounded.append({**part, "text": part["text"][:room]})
            room -= len(part["text"])
    return {**block, "content": [*bounded, {"type": "text", "text": _left_out(total)}]}


def _is_said(part: Block) -> bool:
    return part.get("type") != "text" or (isinstance(part.get("text"), str) and bool(part["text"].strip()))


def _left_out(total: int) -> str:
    return (
        f"(This result has {total} characters; the last {total - RESULT_CHARACTERS} were left out: "
        f"a request carries at most {RESULT_CHARACTERS} of one. Ask for the part that you need.)"
    )

"""What a request weighed and carried: the byte ledger (A1) and the load receipt (L28), read off the body as sent. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lineage.agent.images import image_bytes, images_of
from lineage.agent.messages import encode


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Entries that stand before the kept ones and are not in the request: numbers, both included; none when all are."""

    first: int
    last: int

    kept: int = 0  # entries within that are in the request after all: the newest input, in a long run

    @property
    def entries(self) -> int:
        return self.last - self.first + 1 - self.kept


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """Bytes of the body by part. The parts and `frame` (keys, brackets, model, limits) add up to `total`."""

    total: int
    frame: int
    system: int
    lineage: int
    agents: int
    memory: int
    tools: int
    attachments: int
    images: int
    messages: int
    messages_kept: int  # messages, not bytes
    images_kept: int
    attachments_carried: int  # attachments whose text the body carries, wholly or in part
    attachments_listed: int  # those it only names
    entries_left_out: int
    left_out: tuple[int, int] | None  # first and last entry
    cap: int
    notes: tuple[str, ...]  # what was left out and why, as sentences

    @property
    def counted(self) -> int:
        """What the cap holds against: the body without images."""
        return self.total - self.images

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Which memories the body carried, how many of AGENTS.md's characters, and how many of each attachment's."""

    memories: tuple[str, ...]
    agents_characters: int
    agents_total: int
    attachments: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def weigh(
    body: bytes,
    *,
    lineage: str,
    agents: str,
    memories: Mapping[str, str],
    attachments: Mapping[str, str],
    listed: Mapping[str, str],
    left_out: LeftOut | None,
    cap: int,
    notes: tuple[str, ...] = (),
) -> Ledger:
    """The ledger of a body. The texts say what to look for in it; what it does not hold weighs nothing."""
    read = json.loads(body)
    system = [block["text"] for block in read["system"]]
    texts = _texts(read)
    lines = _lines(texts)
    images = [image for message in read["messages"] for image in images_of(message["content"])]
    sizes = {
        "system": _length(system[0]),
        "lineage": _length(lineage) if lineage and lineage in system else 0,
        "agents": _length(agents) if agents and agents in system else 0,
        "memory": sum(_length(line) for line in memories.values() if line in lines),
        "tools": len(encode(read["tools"])) if "tools" in read else 0,
        "attachments": sum(_length(text) for text in (*attachments.values(), *listed.values()) if text in texts),
        "images": sum(image_bytes(image) for image in images),
    }
    messages = len(encode(read["messages"])) - sizes["memory"] - sizes["attachments"] - sizes["images"]
    return Ledger(
        total=len(body),
        frame=len(body) - sum(sizes.values()) - messages,
        messages=messages,
        messages_kept=len(read["messages"]),
        images_kept=len(images),
        attachments_carried=sum(text in texts for text in attachments.values()),
        attachments_listed=sum(text in texts for text in listed.values()),
        entries_left_out=left_out.entries if left_out else 0,
        left_out=(left_out.first, left_out.last) if left_out else None,
        cap=cap,
        notes=notes,
        **sizes,
    )


def receive(
    body: bytes,
    *,
    agents: str,
    characters: int,
    total: int,
    memories: Mapping[str, str],
    attachments: Mapping[str, tuple[str, int]] | None = None,
) -> Receipt:
    """The load receipt of a body: a memory is in it when its index line is, an attachment when its (text, code points) is."""
    read = json.loads(body)
    texts = _texts(read)
    lines = _lines(texts)
    carried = any(block["text"] == agents for block in read["system"]) if agents else False
    return Receipt(
        memories=tuple(slug for slug, line in memories.items() if line in lines),
        agents_characters=characters if carried else 0,
        agents_total=total,
        attachments={name: carried for name, (text, carried) in (attachments or {}).items() if text in texts},
    )


def carried_texts(body: bytes) -> frozenset[str]:
    """The texts that users say in a body, as it was sent."""
    return frozenset(_texts(json.loads(body)))


def _texts(read: Mapping[str, Any]) -> list[str]:
    return [
        str(block.get("text", ""))
        for message in read["messages"]
        if message["role"] == "user"
        for block in message["content"]
        if block.get("type") == "text"
    ]


def _lines(texts: list[str]) -> set[str]:
    return {line for text in texts for line in text.split("\n")}


def _length(text: str) -> int:
    """Bytes of the text inside a JSON string."""
    return len(encode(text)) - 2

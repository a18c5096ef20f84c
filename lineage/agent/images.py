"""What a request carries in images: a budget of its own, the newest first (A1). Pure."""

from collections.abc import Sequence
from typing import Any

from lineage.agent.messages import Block, Message

IMAGE_BYTES = 20_000_000
"""Bytes of all images as sent (base64): providers refuse requests of 32 MB, and this leaves room for the rest."""

IMAGES = 100
"""Images of one request: the number that providers take."""

_KINDS = frozenset({"image", "document"})


def within_budget(messages: Sequence[Message], conversation: int) -> list[Message]:
    """The messages with their oldest images replaced by a line that names each, once the budget is used up."""
    room, count = IMAGE_BYTES, IMAGES
    full = False  # once one was left out, all older ones are: what is seen is the newest, without gaps

    def fit(block: Block, name: str) -> Block:
        nonlocal room, count, full
        size = image_bytes(block)
        full = full or size > room or count == 0
        if full:
            return {"type": "text", "text": _placeholder(block, name, size)}
        room, count = room - size, count - 1
        return block

    def fit_all(blocks: Sequence[Block], seq: int) -> list[Block]:
        kept: list[Block] = []
        for block in reversed(blocks):
            if block.get("type") in _KINDS:
                kept.append(fit(block, f"#{conversation}/{seq}"))
            elif block.get("type") == "tool_result" and isinstance(block.get("content"), list):
                kept.append({**block, "content": fit_all(block["content"], seq)})
            else:
                kept.append(block)
        return kept[::-1]

    fitted = [
        Message(role=message.role, content=fit_all(message.content, message.seq), seq=message.seq)
        if message.may_hold_images and has_images(message.content)
        else message
        for message in reversed(messages)
    ]
    return fitted[::-1]


def has_images(blocks: Sequence[Any]) -> bool:
    return any(True for _ in images_of(blocks))


def images_of(blocks: Sequence[Any]) -> list[Block]:
    """All images of the blocks, those inside tool results too."""
    found: list[Block] = []
    for block in blocks:
        if not isinstance(block, dict):
            continue
        if block.get("type") in _KINDS:
            found.append(block)
        elif block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            found += images_of(block["content"])
    return found


def image_bytes(block: Block) -> int:
    """Bytes of the image's data in the body; an image by URL has none."""
    source = block.get("source")
    data = source.get("data") if isinstance(source, dict) and source.get("type") == "base64" else None
    return len(data.encode("utf-8", "replace")) if isinstance(data, str) else 0


def _placeholder(block: Block, name: str, size: int) -> str:
    source = block.get("source")
    media = source.get("media_type", "") if isinstance(source, dict) else ""
    what = f"{block['type']} {media}".rstrip()
    return (
        f"({what} of {name}, {size} bytes, was left out: a request carries at most {IMAGES} images "
        f"of {IMAGE_BYTES} bytes together, the newest first.)"
    )

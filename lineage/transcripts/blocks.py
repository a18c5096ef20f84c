"""Content blocks of messages: those that the Messages API knows, with images noted for the page. Pure.

Images stay in the messages, where the model reads them; `data` only names them (`n` counts the images of one entry from 0), and
`images_of` gives the bytes back.
"""

import binascii
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

# Block types that a request may carry. A type that nobody knows yet would make the API refuse the whole conversation.
KNOWN = frozenset(
    {
        "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "search_result",
        "server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
        "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "mcp_tool_use", "mcp_tool_result",
        "container_upload", "tool_reference", "tool_search_tool_result",
    }
)  # fmt: skip


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """The content of a message as blocks: a string is one text block; what is no object is left out."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def text_of_blocks(content: Any) -> str:
    """The text blocks of a content, one after another."""
    if isinstance(content, str):
        return content
    texts = (block.get("text") for block in blocks_of(content) if block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def known_blocks(blocks: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """(blocks that a request may carry, types of the others). Blank text is neither: the API refuses it."""
    kept: list[dict[str, Any]] = []
    unknown: list[str] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            text = block.get("text")
            if isinstance(text, str) and text.strip():
                kept.append(block)
        elif kind in KNOWN:
            kept.append(block)
        else:
            unknown.append(str(kind)[:80])
    return kept, unknown


def image_notes(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`[{n, media_type, bytes}]` for the images in these blocks and in their tool results; bytes as decoded."""
    return [
        {"n": n, "media_type": str(source.get("media_type"))[:80], "bytes": _decoded_size(source)}
        for n, source in enumerate(_image_sources(blocks))
    ]


def images_of(model: list[dict[str, Any]]) -> list[tuple[str, bytes]]:
    """(media type, bytes) of every image in an entry's messages, in the order of `data.images`; bad base64 is empty bytes."""
    found: list[tuple[str, bytes]] = []
    for message in model:
        for source in _image_sources(blocks_of(message.get("content"))):
            try:
                decoded = b64decode(str(source.get("data")), validate=True)
            except (binascii.Error, ValueError):
                decoded = b""
            found.append((str(source.get("media_type")), decoded))
    return found


def _image_sources(blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        source = block.get("source")
        if block.get("type") == "image" and isinstance(source, dict) and source.get("type") == "base64":
            yield source
        elif block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            yield from _image_sources(blocks_of(block["content"]))


def _decoded_size(source: dict[str, Any]) -> int:
    data = source.get("data")
    return len(data) * 3 // 4 - data[-2:].count("=") if isinstance(data, str) else 0

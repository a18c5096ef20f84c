"""The text of an entry that search reads: all strings that people or models wrote, none that only machines do. Pure."""

import json
from collections.abc import Iterator
from typing import Any

# Facts of the wire beside the text, and what is no text though it is a string.
_SKIPPED = frozenset(
    {"type", "role", "id", "tool_use_id", "signature", "media_type", "source", "cache_control", "sha256"}
)
_ENCODED = 400  # characters without any space: base64 and the like
MODEL_CHARACTERS = 512 * 1024  # of an entry's JSON that are read; longer ones are images


def text_of(*, model: str, data: str) -> str:
    """What the model reads; where it reads nothing, what people see. Both are the stored JSON."""
    return "\n".join(_strings(_parsed(model))) or "\n".join(_strings(_parsed(data)))


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip() and not (len(value) > _ENCODED and " " not in value and "\n" not in value):
            yield value
    elif depth < 20 and isinstance(value, dict):
        for key, inner in value.items():
            if key not in _SKIPPED:
                yield from _strings(inner, depth + 1)
    elif depth < 20 and isinstance(value, list):
        for inner in value:
            yield from _strings(inner, depth + 1)


def _parsed(text: str) -> Any:
    if len(text) > MODEL_CHARACTERS:
        return None
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None

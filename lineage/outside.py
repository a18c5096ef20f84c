"""Entries as outside runners send them, over HTTP and MCP alike (CONTRACT)."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from lineage.actions.entries import NewEntry


class OutsideEntry(Struct, forbid_unknown_fields=True):
    kind: str
    model: list[dict[str, Any]] | None = None
    data: dict[str, Any] | None = None


def new_entries(entries: Sequence[OutsideEntry], *, author: int) -> list[NewEntry]:
    """The entries to append; what a user entry asks stands in the outline."""
    return [
        NewEntry(
            kind=entry.kind,
            model=entry.model,
            data=entry.data or {},
            author=author,
            prompt=prompt_of(entry.kind, entry.model),
        )
        for entry in entries
    ]


def prompt_of(kind: str, model: Sequence[dict[str, Any]] | None) -> str:
    """The text parts of a user entry."""
    if kind != "user":
        return ""
    parts: list[str] = []
    for message in model or ():
        content = message.get("content")
        if isinstance(content, str):
            parts.append(content)
        elif isinstance(content, list):
            parts += [str(block.get("text", "")) for block in content if isinstance(block, dict)]
    return " ".join(parts)

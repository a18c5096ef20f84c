"""Reading an extracted text by offset and limit, for people, HTTP, MCP and the tool alike (D20)."""

from pathlib import Path
from typing import Any

import msgspec

from console.errors import Conflict, DomainError, Invalid
from documents.attachments.limits import LONGEST_PAGE, PAGE_CHARS
from documents.attachments.sidecar import NO_REASON, UNREADABLE, open_sidecar

TOOL = "attachment_read"  # the tool's name: list lines print this constant, so that a model never calls another


class Page(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One page. `next_offset` stands only when more follows, `extract_truncated` on every page of a cut extraction."""

    name: str
    status: str
    offset: int
    limit: int
    total_chars: int
    truncated: bool
    text: str
    next_offset: int | None = None
    extract_truncated: bool = False


def read_page(*, folder: Path, name: str, offset: Any = 0, limit: Any = None) -> Page:
    """A page of an attachment that the caller may see, by its issued name.

    Offsets and limits count code points. Refusals in this order: `negative_offset` (before the disk is touched), `pending`,
    `unreadable` (with the reason), `offset_past_end` (with the total). An offset equal to the total is legal and empty.
    """
    start, size = whole_number("offset", offset), effective_limit(limit)
    if start < 0:
        raise Invalid(
            "offset", f"offset is {start}; it counts characters from 0.", code="negative_offset", offset=start
        )
    sidecar = open_sidecar(folder, name)
    if sidecar is None:
        raise Conflict("pending", f"{name} is still being extracted. Read it again in a moment.", name=name)
    meta = sidecar.meta
    if meta.status == UNREADABLE:
        reason = meta.reason or NO_REASON
        raise DomainError("unreadable", f"{name} has no text to read: {reason}.", name=name, reason=reason)
    if start > meta.chars:
        raise Invalid(
            "offset",
            f"offset {start} lies past the end: {name} has {meta.chars} characters.",
            code="offset_past_end",
            offset=start,
            total_chars=meta.chars,
        )
    text = sidecar.read(start, size)
    after = start + len(text)
    return Page(
        name=name,
        status=meta.status,
        offset=start,
        limit=size,
        total_chars=meta.chars,
        truncated=after < meta.chars,
        next_offset=after if after < meta.chars else None,
        extract_truncated=meta.truncated,
        text=text,
    )


def effective_limit(limit: Any) -> int:
    """None and what is not positive mean the default; more than the longest page is clamped."""
    size = PAGE_CHARS if limit is None else whole_number("limit", limit)
    return PAGE_CHARS if size <= 0 else min(size, LONGEST_PAGE)


def whole_number(field: str, value: Any) -> int:
    """A whole number as JSON, a query or a model brings it: 8000, "8000", 8000.0. Everything else is refused."""
    if isinstance(value, str) and len(value) <= 24:
        try:
            value = int(value)
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                value = None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**53:
        raise Invalid(field, f"{field} is a whole number, such as 8000.", code="malformed_number")
    return value

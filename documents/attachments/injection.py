"""What the attachments of one request bring along, and the list lines of what they leave out (D19). Pure.

Two budgets, so that a cursor never points at the end: extraction bounds the sidecar, injection bounds the request.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from documents.attachments.limits import INJECTION_CHARS
from documents.attachments.reading import TOOL
from documents.attachments.sidecar import EXTRACTED, NO_REASON


@dataclass(frozen=True, kw_only=True)
class Attached:
    """One attachment of a request: its issued name, the name that a person gave it, and its sidecar's facts."""

    name: str
    filename: str
    media_type: str
    status: str  # pending, extracted, unreadable
    chars: int = 0
    truncated: bool = False
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Injected:
    """`text` for the request; `carried` code points of each attachment by name."""

    text: str
    carried: dict[str, int]


def inject(attachments: Sequence[Attached], read: Callable[[str, int], str], budget: int = INJECTION_CHARS) -> Injected:
    """Texts in attachment order as far as the budget reaches, then a list line for each that was cut or not begun.

    `read(name, limit)` gives the first `limit` code points of an extracted text.
    """
    parts: list[str] = []
    lines: list[str] = []
    carried: dict[str, int] = {}
    for item in attachments:
        if item.status != EXTRACTED:
            lines.append(_unreadable_line(item))
            continue
        take = min(item.chars, budget)
        text = read(item.name, take) if take else ""
        budget -= len(text)
        carried[item.name] = len(text)
        if text:
            parts.append(f"Attachment {item.filename} ({item.name}):\n{text}")
        if len(text) < item.chars or item.truncated:
            lines.append(_list_line(item, len(text)))
    if lines:
        parts.append("Attachments not shown in full:\n" + "\n".join(lines))
    return Injected(text="\n\n".join(parts), carried=carried)


def _list_line(item: Attached, shown: int) -> str:
    cut = " The file itself holds more than was extracted." if item.truncated else ""
    if shown >= item.chars:
        return (
            f"- {item.name} ({item.filename}, {item.media_type}): all {item.chars} extracted characters are shown.{cut}"
        )
    return (
        f"- {item.name} ({item.filename}, {item.media_type}): {shown} of {item.chars} characters shown."
        f" Read on with {TOOL}, name={item.name}, offset={shown}.{cut}"
    )


def _unreadable_line(item: Attached) -> str:
    why = "still being extracted" if item.status == "pending" else item.reason or NO_REASON
    return f"- {item.name} ({item.filename}, {item.media_type}): no text, {why}."

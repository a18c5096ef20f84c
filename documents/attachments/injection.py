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
    """One attachment in a request: `text` while there is room, `line` in its place when it has to yield.

    `carried` are the code points of the attachment in `text`; where that is cut, a list line ends it.
    """

    name: str
    text: str
    line: str
    carried: int


def inject(
    attachments: Sequence[Attached], read: Callable[[str, int], str], budget: int = INJECTION_CHARS
) -> list[Injected]:
    """Texts in attachment order as far as the budget of all reaches; what was cut or not begun gets a list line.

    `read(name, limit)` gives the first `limit` code points of an extracted text.
    """
    found: list[Injected] = []
    for item in attachments:
        if item.status != EXTRACTED:
            line = _unreadable_line(item)
            found.append(Injected(name=item.name, text=line, line=line, carried=0))
            continue
        take = min(item.chars, budget)
        text = read(item.name, take) if take else ""
        budget -= len(text)
        parts = [f"Attachment {item.filename} ({item.name}):\n{text}"] if text else []
        if len(text) < item.chars or item.truncated or not text:
            parts.append(_list_line(item, len(text)))
        found.append(Injected(name=item.name, text="\n\n".join(parts), line=_list_line(item, 0), carried=len(text)))
    return found


def named(item: Attached) -> str:
    """How a request calls it: the exact name that `attachment_read` wants, the person's name, the type."""
    return f"{item.name} ({item.filename}, {item.media_type})"


def _list_line(item: Attached, shown: int) -> str:
    cut = " The file itself holds more than was extracted." if item.truncated else ""
    if shown >= item.chars:
        return f"Attachment {named(item)}: all {item.chars} extracted characters are shown.{cut}"
    return (
        f"Attachment {named(item)}: {shown} of {item.chars} characters shown."
        f" Read on with {TOOL}, name={item.name}, offset={shown}.{cut}"
    )


def _unreadable_line(item: Attached) -> str:
    why = "still being extracted" if item.status == "pending" else item.reason or NO_REASON
    return f"Attachment {named(item)}: no text, {why}."

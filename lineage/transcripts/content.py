"""One line's entry without its place: what it shows and says (L2). Pure."""

from datetime import datetime
from typing import Any

import msgspec

from lineage.transcripts.plan import PlannedUsage


class Call(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A tool call that waits for its result."""

    name: str
    time: datetime | None = None


class Content(msgspec.Struct, kw_only=True, gc=False):
    """`asked` are calls of this line, `answered` the ids of calls whose results it brings; `model_name` is who answered."""

    kind: str
    model: list[dict[str, Any]] | None = None
    data: dict[str, Any] = {}
    prompt: str = ""
    message_id: str = ""
    outcome: str = ""
    model_name: str = ""
    usage: PlannedUsage | None = None
    asked: tuple[tuple[str, str, dict[str, Any]], ...] = ()  # (call id, tool, input)
    answered: tuple[str, ...] = ()

"""What models were sent (A1, L28), as pages read it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lineage.models import Conversation, ModelRequest

PAGE = 50

PARTS = (
    ("messages", "Messages"),
    ("system", "Instructions"),
    ("lineage", "Place in the tree"),
    ("agents", "AGENTS.md"),
    ("memory", "Memory"),
    ("tools", "Tools"),
    ("attachments", "Attachments"),
    ("frame", "Frame"),
    ("images", "Images, beside the limit"),
)
"""The byte ledger's parts in the order and the words of a page."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One request. `parts` are (words, bytes), those that weigh anything; `receipt` is none when it was never sent."""

    row: ModelRequest
    ledger: Mapping[str, Any]
    receipt: Mapping[str, Any] | None
    parts: list[tuple[str, int]]

    @property
    def counted(self) -> int:
        return int(self.ledger["total"]) - int(self.ledger["images"])


def sent_requests(conversation: Conversation, *, before: int | None = None, limit: int = PAGE) -> list[Sent]:
    """The requests of a conversation, the newest first, below the row `before`."""
    rows = ModelRequest.objects.filter(conversation=conversation).order_by("-pk")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return [_sent(row) for row in rows[:limit]]


def _sent(row: ModelRequest) -> Sent:
    ledger = json.loads(row.ledger)
    parts = [(words, ledger[name]) for name, words in PARTS if ledger[name]]
    return Sent(row=row, ledger=ledger, receipt=json.loads(row.receipt), parts=parts)

"""Batches of agents that were not applied, told to those who watch the document (D15)."""

from console.clock import now
from console.errors import DomainError
from console.events import Told, publish_on_commit, raw
from documents.actions.batches import NewBatch


def tell_refused(document: int, batch: NewBatch, refusal: DomainError) -> None:
    """Only an agent's, and only what the text was asked about: people see their own, and a repeat will be another matter.

    Passed on, never stored: the record holds what was applied (R4).
    """
    if not batch.who.is_agent or "revision" not in refusal.facts:
        return
    frame = {
        "type": "refusal",
        "document": document,
        "author": batch.who.as_author(),
        "time": now().isoformat(),
        "edits": len(batch.edits),
        "revision": refusal.facts["revision"],
        "error": refusal.as_json(),
    }
    publish_on_commit(f"document:{document}", Told(frame=raw(frame)))

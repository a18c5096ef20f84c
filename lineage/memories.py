"""What pages and calls read of a root's memory (L25). Reads only; `lineage.actions.memory` is its one writer."""

import json
from typing import Any

from django.db.models import QuerySet

from console.errors import NotFound
from lineage.models import Memory, MemoryChange, MemoryProposal, Root
from lineage.models.memory import BODY_LENGTH, LINE_LENGTH, MEMORIES, SLUG_LENGTH

LIMITS = {"memories": MEMORIES, "slug": SLUG_LENGTH, "line": LINE_LENGTH, "body": BODY_LENGTH}


def memories_json(root: Root) -> list[dict[str, Any]]:
    """The index by slug, without bodies."""
    return [_index_json(memory) for memory in Memory.objects.filter(root=root).order_by("slug")]


def memory_json(root: Root, slug: str) -> dict[str, Any]:
    """One memory in full with its history, the newest first. Refusal: `not_found`, naming what was deleted."""
    changes = (
        MemoryChange.objects.filter(root=root, slug=slug).select_related("author").order_by("-version", "-ordinal")
    )
    history = [_change_json(change) for change in changes]
    memory = Memory.objects.filter(root=root, slug=slug).first()
    if memory is None:
        raise NotFound("memory", slug)
    return {**_index_json(memory), "body": memory.body, "history": history}


def proposals_of(root: Root, status: str) -> QuerySet[MemoryProposal]:
    """Its proposals of that status, the newest first."""
    rows = MemoryProposal.objects.filter(root=root, status=status).select_related("landing", "decided_by")
    return rows.order_by("-pk")


def proposal_json(row: MemoryProposal) -> dict[str, Any]:
    """A proposal with the landing it comes from."""
    landing = row.landing
    return {
        "id": row.pk,
        "root": row.root_id,
        "status": row.status,
        "ops": json.loads(row.ops),
        "why": row.why,
        "landing": {
            "id": landing.pk,
            "title": landing.title,
            "sha": landing.sha,
            "conversation": landing.conversation_id,
        },
        "decided_by": row.decided_by.name if row.decided_by else None,
        "created": row.created.isoformat(),
    }


def _index_json(memory: Memory) -> dict[str, Any]:
    return {
        "slug": memory.slug,
        "kind": memory.kind,
        "line": memory.line,
        "source": memory.source,
        "changed": memory.changed.isoformat(),
    }


def _change_json(change: MemoryChange) -> dict[str, Any]:
    return {
        "version": change.version,
        "op": change.op,
        "before": json.loads(change.before) if change.before else None,
        "after": json.loads(change.after) if change.after else None,
        "author": change.author.name if change.author else None,
        "time": change.time.isoformat(),
    }

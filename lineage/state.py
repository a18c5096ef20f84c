"""The small state of a conversation as viewers get it: whole, never a difference (R3)."""

import json
from typing import Any

from django.db.models import Sum

from documents.attachments.queries import attachment_json, attachments_of
from lineage.context import as_blocks, parse_messages
from lineage.models import Approval, ApprovalStatus, Conversation, Draft, Submission, SubmissionStatus, Usage

QUEUED_TEXT = 500  # characters of a queued text: the state is sent whole at each change
_SUMS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_micros")


def conversation_state(conversation: Conversation) -> dict[str, Any]:
    """`{title, run, queue, draft, approvals, usage}` and the attachments, of CONTRACT's `state` frame."""
    return {
        "title": conversation.title,
        "run": {
            "state": conversation.state,
            "why": conversation.state_why,
            "since": conversation.state_since.isoformat(),
        },
        "queue": queue_of(conversation.pk),
        "draft": draft_of(conversation.pk),
        "approvals": approvals_of(conversation.pk),
        "usage": own_usage(conversation.pk),
        "attachments": [attachment_json(row) for row in attachments_of([conversation.pk])],
    }


def draft_of(conversation: int) -> dict[str, Any] | None:
    """The answer that is being written: `{text, thinking, calls, since}`, `thinking` in characters, `calls` by name."""
    draft = Draft.objects.filter(conversation=conversation).first()
    if draft is None:
        return None
    blocks = json.loads(draft.blocks)
    return {
        "text": "\n\n".join(block.get("text", "") for block in blocks if block.get("type") == "text"),
        "thinking": sum(len(block.get("thinking", "")) for block in blocks if block.get("type") == "thinking"),
        "calls": [block.get("name", "") for block in blocks if block.get("type") == "tool_use"],
        "since": draft.began.isoformat(),
    }


def approvals_of(conversation: int) -> list[dict[str, Any]]:
    """The calls of this conversation that wait for a decision, oldest first. What they would do is read apart: it is long."""
    waiting = Approval.objects.filter(conversation=conversation, status=ApprovalStatus.WAITING).order_by("pk")
    return [
        {
            "id": row.pk,
            "seq": row.seq,
            "call": row.call,
            "tool": row.tool,
            "line": row.line,
            "anew": row.anew,
            "asked": row.asked.isoformat(),
        }
        for row in waiting
    ]


def queue_of(conversation: int) -> list[dict[str, Any]]:
    """What waits to be placed, in arrival order; of a long text the first characters, said by `cut`."""
    queued = Submission.objects.filter(conversation=conversation, status=SubmissionStatus.QUEUED)
    return [_queued_json(row) for row in queued.select_related("author", "note").order_by("pk")]


def _queued_json(row: Submission) -> dict[str, Any]:
    text = "\n".join(
        block["text"]
        for message in parse_messages(row.model)
        for block in as_blocks(message.get("content", ""))
        if isinstance(block.get("text"), str)
    )
    return {
        "id": row.pk,
        "type": row.type,
        "when_busy": row.when_busy,
        "kind": row.kind,
        "text": text[:QUEUED_TEXT],
        "cut": len(text) > QUEUED_TEXT,
        "author": {"id": row.author.pk, "name": row.author.name, "kind": row.author.kind} if row.author else None,
        "mail": hasattr(row, "note"),  # waits for its reader, not for a run
        "created": row.created.isoformat(),
    }


def own_usage(conversation: int) -> dict[str, int | None]:
    """Sums over the conversation's own answers; `cost_micros` is none where no answer has a price (A6)."""
    sums = Usage.objects.filter(conversation=conversation).aggregate(**{name: Sum(name) for name in _SUMS})
    return {name: value if name == "cost_micros" else int(value or 0) for name, value in sums.items()}


def subtree_usage(conversation: int) -> dict[str, int | None]:
    """Sums over the conversation and all that it owns, at any depth (A6). Forks never count."""
    owned = [conversation]
    found = owned
    while found:
        found = list(Conversation.objects.filter(owner__in=found).values_list("pk", flat=True))
        owned = owned + found
    sums = Usage.objects.filter(conversation__in=owned).aggregate(**{name: Sum(name) for name in _SUMS})
    return {name: value if name == "cost_micros" else int(value or 0) for name, value in sums.items()}


def root_usage(root: int) -> dict[str, int | None]:
    """Sums over a whole tree."""
    sums = Usage.objects.filter(conversation__root=root).aggregate(**{name: Sum(name) for name in _SUMS})
    return {name: value if name == "cost_micros" else int(value or 0) for name, value in sums.items()}

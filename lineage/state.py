"""The small state of a conversation as viewers get it: whole, never a difference (R3)."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.db.models import Sum

from documents.attachments.queries import attachment_json, attachments_of, having_attachments
from lineage.context import as_blocks, parse_messages
from lineage.loading import visible_ranges
from lineage.models import Approval, ApprovalStatus, Conversation, Draft, Submission, SubmissionStatus, Usage
from lineage.waits import targets_of

QUEUED_TEXT = 500  # characters of a queued text: the state is sent whole at each change
_SUMS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_micros")
_NOTHING_USED: dict[str, int | None] = {name: None if name == "cost_micros" else 0 for name in _SUMS}


def conversation_state(conversation: Conversation) -> dict[str, Any]:
    """`{title, run, queue, draft, approvals, usage}` of CONTRACT's `state` frame, for whom it waits, and the attachments."""
    return conversation_states([conversation])[conversation.pk]


def conversation_states(conversations: Sequence[Conversation]) -> dict[int, dict[str, Any]]:
    """The same for many, in as many statements as for one, where none of them has attachments."""
    ids = [conversation.pk for conversation in conversations]
    queues, drafts, approvals, usages = _queues(ids), _drafts(ids), _approvals(ids), _usages(ids)
    waits = targets_of(ids)
    attached = having_attachments({place for row in conversations for place, _ in row.segments})
    return {
        row.pk: {
            "title": row.title,
            "run": {"state": row.state, "why": row.state_why, "since": row.state_since.isoformat()},
            "queue": queues.get(row.pk, []),
            "draft": drafts.get(row.pk),
            "approvals": approvals.get(row.pk, []),
            "usage": usages.get(row.pk, _NOTHING_USED),
            "waits": waits.get(row.pk, []),
            "attachments": _attachments(row) if any(place in attached for place, _ in row.segments) else [],
        }
        for row in conversations
    }


def _attachments(conversation: Conversation) -> list[dict[str, Any]]:
    return [attachment_json(row) for row in attachments_of(conversation.pk, visible_ranges(conversation))]


def draft_of(conversation: int) -> dict[str, Any] | None:
    """The answer that is being written: `{text, thinking, calls, since}`, `thinking` in characters, `calls` by name."""
    return _drafts([conversation]).get(conversation)


def _drafts(conversations: Sequence[int]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for draft in Draft.objects.filter(conversation__in=conversations):
        blocks = json.loads(draft.blocks)
        found[draft.conversation_id] = {
            "text": "\n\n".join(block.get("text", "") for block in blocks if block.get("type") == "text"),
            "thinking": sum(len(block.get("thinking", "")) for block in blocks if block.get("type") == "thinking"),
            "calls": [block.get("name", "") for block in blocks if block.get("type") == "tool_use"],
            "since": draft.began.isoformat(),
        }
    return found


def approvals_of(conversation: int) -> list[dict[str, Any]]:
    """The calls of this conversation that wait for a decision, oldest first. What they would do is read apart: it is long."""
    return _approvals([conversation]).get(conversation, [])


def _approvals(conversations: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    waiting = Approval.objects.filter(conversation__in=conversations, status=ApprovalStatus.WAITING)
    for row in waiting.order_by("pk"):
        found[row.conversation_id].append(
            {
                "id": row.pk,
                "seq": row.seq,
                "call": row.call,
                "tool": row.tool,
                "line": row.line,
                "anew": row.anew,
                "asked": row.asked.isoformat(),
            }
        )
    return found


def queue_of(conversation: int) -> list[dict[str, Any]]:
    """What waits to be placed, in arrival order; of a long text the first characters, said by `cut`."""
    return _queues([conversation]).get(conversation, [])


def _queues(conversations: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    queued = Submission.objects.filter(conversation__in=conversations, status=SubmissionStatus.QUEUED)
    for row in queued.select_related("author", "note").order_by("pk"):
        found[row.conversation_id].append(_queued_json(row))
    return found


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
    return _usages([conversation]).get(conversation, _NOTHING_USED)


def _usages(conversations: Sequence[int]) -> dict[int, dict[str, int | None]]:
    rows = Usage.objects.filter(conversation__in=conversations).order_by().values_list("conversation")
    summed = rows.annotate(*(Sum(name) for name in _SUMS))
    return {
        pk: {name: None if value is None else int(value) for name, value in zip(_SUMS, values, strict=True)}
        for pk, *values in summed
    }


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

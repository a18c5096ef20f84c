"""What pages and calls read of approvals and rules (A3). Reads only; `lineage.actions.approvals` writes."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import QuerySet

from console.access import Who
from lineage.access import visible_roots
from lineage.models import Approval, ApprovalStatus, Conversation, Root, Rule

PAGE = 50  # of one answer or page
DIFF_CHARACTERS = 60_000  # of a diff in the queue, which has up to 50 of them; the rest is read page by page
RULES = 500  # of one page: whoever has more allows too much


def waiting_approvals(who: Who) -> QuerySet[Approval]:
    """The team's one queue: all that waits in roots that `who` may see, the oldest first."""
    return _rows(who).filter(status=ApprovalStatus.WAITING).order_by("pk")


def decided_approvals(who: Who) -> QuerySet[Approval]:
    """What was decided, by people, rules and the system, the newest first."""
    return _rows(who).exclude(status=ApprovalStatus.WAITING).order_by("-pk")


def waiting_in(conversation: Conversation) -> QuerySet[Approval]:
    """What waits in one conversation, the oldest first."""
    return _related(Approval.objects.filter(conversation=conversation, status=ApprovalStatus.WAITING)).order_by("pk")


def waiting_by_conversation(conversations: Sequence[int]) -> dict[int, list[Approval]]:
    """What waits in each of these, the oldest first; those without any are left out."""
    rows = Approval.objects.filter(conversation__in=conversations, status=ApprovalStatus.WAITING).order_by("pk")
    found: dict[int, list[Approval]] = {}
    for row in rows:
        found.setdefault(row.conversation_id, []).append(row)
    return found


def rules_of(root: Root) -> QuerySet[Rule]:
    """The rules of a root that hold, the newest first."""
    return Rule.objects.filter(root=root, ended=None).select_related("made_by").order_by("-pk")


def rules_seen(who: Who) -> list[Rule]:
    """The rules that hold in the roots that `who` sees, by root."""
    rows = Rule.objects.filter(root__in=visible_roots(who), ended=None).select_related("made_by", "root__conversation")
    return list(rows.order_by("root", "pk")[:RULES])


def paths_of(conversations: Iterable[Conversation]) -> dict[int, list[Conversation]]:
    """From the root down to each: climbing goes owner first, then parent (L1). One query per level."""
    known = {row.pk: row for row in conversations}
    wanted = list(known)
    above = _above(known.values())
    while above:
        rows = {row.pk: row for row in Conversation.objects.filter(pk__in=above)}
        known |= rows
        above = _above(rows.values()) - set(known)
    return {number: _climbed(number, known) for number in wanted}


def approvals_json(rows: Sequence[Approval]) -> list[dict[str, Any]]:
    """As CONTRACT's list has them: what, who asks, from where, why, and who decided."""
    paths = paths_of(row.conversation for row in rows)
    return [approval_json(row, paths[row.conversation_id]) for row in rows]


def approval_json(row: Approval, path: Sequence[Conversation]) -> dict[str, Any]:
    """One approval; `path` leads from the root to who asks."""
    agent = row.conversation.agent
    return {
        "id": row.pk,
        "status": row.status,
        "tool": row.tool,
        "line": row.line,
        "root": row.root_id,
        "conversation": row.conversation_id,
        "entry": row.seq,
        "call": row.call,
        "path": [{"id": place.pk, "title": place.title} for place in path],
        "agent": agent.name if agent else None,
        "why": row.why,
        "preview": preview_of(row, DIFF_CHARACTERS),
        "anew": row.anew,
        "asked": row.asked.isoformat(),
        "expires": row.expires.isoformat(),
        "decision": _DECISION.get(row.status),
        "decided": row.decided.isoformat() if row.decided else None,
        "by": row.decided_by.name if row.decided_by else None,
        "rule": {"id": row.rule.pk, "match": row.rule.match} if row.rule else None,
        "comment": row.comment,
    }


def preview_of(row: Approval, limit: int, offset: int = 0) -> dict[str, Any]:
    """What the call would do. Of a diff `limit` characters from `offset` on, and `characters` in all; `kept` are those that
    can be read, which is less only where the diff was too long to be kept."""
    found: dict[str, Any] = json.loads(row.preview)
    if "diff" in found:
        kept = found["diff"]
        shown = kept[offset : offset + limit]
        found |= {"diff": shown, "offset": offset, "kept": len(kept), "characters": found.get("characters", len(kept))}
        found["cut"] = len(shown) < found["characters"]
    return found


def rule_json(row: Rule) -> dict[str, Any]:
    return {
        "id": row.pk,
        "root": row.root_id,
        "tool": row.tool,
        "match": row.match,
        "made_by": row.made_by.name,
        "made": row.made.isoformat(),
        "ended": row.ended.isoformat() if row.ended else None,
    }


_DECISION: dict[str, str] = {ApprovalStatus.APPROVED: "approve", ApprovalStatus.DECLINED: "decline"}


def _rows(who: Who) -> QuerySet[Approval]:
    return _related(Approval.objects.filter(root__in=visible_roots(who)))


def _related(rows: QuerySet[Approval]) -> QuerySet[Approval]:
    return rows.select_related("conversation__agent", "root__conversation", "decided_by", "rule", "task")


def _above(rows: Iterable[Conversation]) -> set[int]:
    return {number for row in rows if (number := row.owner_id or row.parent_id or _root_above(row)) is not None}


def _root_above(row: Conversation) -> int | None:
    """A session stands right below its root."""
    return row.root_id if row.pk != row.root_id else None


def _climbed(number: int, known: dict[int, Conversation]) -> list[Conversation]:
    path = [known[number]]
    while (above := path[-1].owner_id or path[-1].parent_id or _root_above(path[-1])) is not None:
        path.append(known[above])
    return path[::-1]

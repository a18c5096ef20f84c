"""Approvals (A3): raised with a waiting call, decided once, ended by the system with what they belong to."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction

from console.access import Permission, Who
from console.clock import now
from console.errors import Conflict, Invalid
from console.json_text import dumped, one_line, storable
from lineage.access import approval_for, root_for
from lineage.actions.entries import lock_conversation
from lineage.actions.roots import lock_root
from lineage.actions.states import announce_state
from lineage.actions.wakes import wake
from lineage.agent.rules import fits, is_rule_of
from lineage.models import Approval, ApprovalStatus, Conversation, Rule, Task
from lineage.models.agents import COMMENT_LENGTH, RULE_LENGTH

LIFE = timedelta(days=7)
"""How long a call waits: over a week's absence, and not for ever."""

EXPIRED = f"Nobody decided within {LIFE.days} days."
_DECISIONS = {"approve": ApprovalStatus.APPROVED, "decline": ApprovalStatus.DECLINED}


def approval_subject(approval: int) -> str:
    """What a call waits for that waits for a decision."""
    return f"approval:{approval}"


def raise_approval(
    *,
    task: Task,
    conversation: Conversation,
    seq: int,
    call: str,
    tool: str,
    arguments: Mapping[str, Any],
    line: str,
    preview: dict[str, Any],
    hash: str,
    why: str,
    anew: bool = False,
) -> Approval:
    """A row for a call whose task and conversation the caller has locked; decided at once where a rule of the root fits."""
    moment = now()
    rules = Rule.objects.filter(root=conversation.root_id, tool=tool, ended=None).order_by("pk")
    rule = next((rule for rule in rules if fits(rule, arguments)), None)
    return Approval.objects.create(
        task=task,
        conversation=conversation,
        root_id=conversation.root_id,
        seq=seq,
        call=call,
        tool=tool,
        line=one_line(line, 300),
        preview=dumped(preview),
        hash=hash,
        why=storable(why),
        anew=anew,
        status=ApprovalStatus.APPROVED if rule else ApprovalStatus.WAITING,
        rule=rule,
        asked=moment,
        expires=moment + LIFE,
        decided=moment if rule else None,
    )


def decide_approval(*, who: Who, approval: int, decision: str, comment: str = "") -> Approval:
    """Approve or decline. The same decision by the same person again changes nothing; another is refused with who decided.

    Refusals: `not_found`, `forbidden`, `invalid`, `decided`.
    """
    wanted = _DECISIONS.get(decision)
    if wanted is None:
        raise Invalid("decision", 'decision is "approve" or "decline".')
    comment = storable(comment).strip()
    if len(comment) > COMMENT_LENGTH:
        raise Invalid(
            "comment",
            f"A comment has at most {COMMENT_LENGTH} characters; this one has {len(comment)}.",
            limit=COMMENT_LENGTH,
            actual=len(comment),
        )
    found = approval_for(who, approval, Permission.DECIDE)
    with transaction.atomic():
        conversation = lock_conversation(found.conversation_id)
        row = _lock(approval)
        if row.status != ApprovalStatus.WAITING:
            if row.status == wanted and row.decided_by_id == who.actor:
                return row
            raise _decided(row)
        _decide(row, conversation, wanted, by=who.actor, comment=comment)
    return row


def approve_always(*, who: Who, approval: int, match: str = "") -> Approval:
    """Approve, and make a rule of it for the root: this command, or paths like this one. Waiting calls that fit are approved too.

    Refusals: those of `decide_approval`, and `invalid` for a rule that does not fit this call.
    """
    found = approval_for(who, approval, Permission.MANAGE)
    arguments = found.arguments
    match = storable(match or is_rule_of(found.tool, arguments))
    if not 1 <= len(match) <= RULE_LENGTH:
        raise Invalid("match", f"A rule has 1 to {RULE_LENGTH} characters.", limit=RULE_LENGTH, actual=len(match))
    if not fits(Rule(tool=found.tool, match=match), arguments):
        raise Invalid(
            "match", f"This rule does not fit the call itself, so it would allow something else: {found.line}"
        )
    row = decide_approval(who=who, approval=approval, decision="approve")
    with transaction.atomic():
        root = lock_root(row.root_id)
        rule, _ = Rule.objects.get_or_create(
            root=root, tool=row.tool, match=match, ended=None, defaults={"made_by_id": who.actor, "made": now()}
        )
    waiting = Approval.objects.select_related("task").filter(root=row.root_id, tool=row.tool, status="waiting")
    for other in waiting:
        if fits(rule, other.arguments):
            _decide_by_rule(other.pk, rule)
    return row


def end_rule(*, who: Who, rule: int) -> Rule:
    """Ask again from now on; again changes nothing. Refusals: `not_found`, `forbidden`."""
    row = Rule.objects.filter(pk=rule).first()
    root_for(who, row.root_id if row else 0, Permission.MANAGE)
    with transaction.atomic():
        lock_root(row.root_id if row else 0)
        row = Rule.objects.get(pk=rule)
        if row.ended is None:
            row.ended, row.ended_by_id = now(), who.actor
            row.save(update_fields=["ended", "ended_by"])
    return row


def end_approvals_of(*, task: Task, why: str) -> int:
    """The system ends what waits for this call, in the transaction that ends the call; answers how many."""
    return Approval.objects.filter(task=task, status=ApprovalStatus.WAITING).update(
        status=ApprovalStatus.ENDED, comment=one_line(why, COMMENT_LENGTH), decided=now()
    )


def expire_approvals() -> bool:
    """End those that nobody decided in time; whether there may be more."""
    late = list(
        Approval.objects.filter(status=ApprovalStatus.WAITING, expires__lte=now())
        .order_by("pk")
        .values_list("pk", flat=True)[:100]
    )
    for approval in late:
        with transaction.atomic():
            conversation = lock_conversation(Approval.objects.values_list("conversation", flat=True).get(pk=approval))
            row = _lock(approval)
            if row.status == ApprovalStatus.WAITING:
                _decide(row, conversation, ApprovalStatus.ENDED, comment=EXPIRED)
    return len(late) == 100


def _decide_by_rule(approval: int, rule: Rule) -> None:
    with transaction.atomic():
        conversation = lock_conversation(Approval.objects.values_list("conversation", flat=True).get(pk=approval))
        row = _lock(approval)
        if row.status == ApprovalStatus.WAITING:
            row.rule = rule
            _decide(row, conversation, ApprovalStatus.APPROVED)


def _decide(
    row: Approval, conversation: Conversation, status: ApprovalStatus, *, by: int | None = None, comment: str = ""
) -> None:
    row.status, row.decided_by_id, row.comment, row.decided = status, by, comment, now()
    row.save(update_fields=["status", "decided_by", "comment", "decided", "rule"])
    wake(approval_subject(row.pk))
    announce_state(conversation=conversation)


def _lock(approval: int) -> Approval:
    rows = Approval.objects.select_for_update(of=("self",), no_key=True).select_related("decided_by", "rule", "task")
    return rows.get(pk=approval)


def _decided(row: Approval) -> Conflict:
    assert row.decided is not None
    by = row.decided_by.name if row.decided_by else f'the rule "{row.rule.match}"' if row.rule else "the system"
    return Conflict(
        "decided",
        f"Approval {row.pk} was {row.status} by {by} already, at {row.decided:%H:%M:%S}."
        + (f" {row.comment}" if row.comment else ""),
        decision=str(row.status),
        by=by,
        comment=row.comment,
        decided=row.decided.isoformat(),
    )

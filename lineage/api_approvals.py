"""HTTP calls on approvals and rules (CONTRACT, HTTP; A3). Parse, act, render (R1)."""

from typing import Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema

from console.access import Permission
from console.answers import json_answer, listed, who_of
from console.errors import Invalid
from lineage.access import approval_for, root_for
from lineage.actions.approvals import approve_always, decide_approval, end_rule
from lineage.approvals import (
    DIFF_CHARACTERS,
    PAGE,
    approvals_json,
    decided_approvals,
    preview_of,
    rule_json,
    rules_of,
    waiting_approvals,
)
from lineage.models import Approval

router = Router(tags=["approvals"])


class DecisionIn(Schema):
    """`always` makes a rule of it for the root: true for this very call, or the pattern itself."""

    decision: Literal["approve", "decline"]
    comment: str = ""
    always: bool | str = False


@router.get("/approvals")
def list_approvals(request: HttpRequest, status: str = "waiting", cursor: str | None = None) -> HttpResponse:
    """The team's queue, oldest first; with `status=decided` what was decided, newest first."""
    if status not in {"waiting", "decided"}:
        raise Invalid("status", "status is waiting or decided.")
    after = _number(cursor)
    rows = waiting_approvals(who_of(request)) if status == "waiting" else decided_approvals(who_of(request))
    if after is not None:
        rows = rows.filter(pk__gt=after) if status == "waiting" else rows.filter(pk__lt=after)
    found = list(rows[: PAGE + 1])
    more = str(found[PAGE - 1].pk) if len(found) > PAGE else None
    return listed(approvals_json(found[:PAGE]), more)


@router.get("/approvals/{approval}")
def get_approval(request: HttpRequest, approval: int, offset: int = 0) -> HttpResponse:
    """One approval, waiting or decided. Of a long diff the part from the character `offset` on."""
    row = approval_for(who_of(request), approval)
    if offset < 0:
        raise Invalid("offset", f"offset is {offset}; it counts characters from 0.")
    return json_answer({**_shown(row), "preview": preview_of(row, DIFF_CHARACTERS, offset)})


@router.post("/approvals/{approval}/decision")
def post_decision(request: HttpRequest, approval: int, body: DecisionIn) -> HttpResponse:
    """Decides once. The same by the same person again is the same answer; another gets `decided` (409) with who did."""
    who = who_of(request)
    if body.always:
        if body.decision != "approve":
            raise Invalid("always", "Only an approval can be made a rule; leave always out to decline.")
        match = body.always if isinstance(body.always, str) else ""
        row = approve_always(who=who, approval=approval, match=match)
    else:
        row = decide_approval(who=who, approval=approval, decision=body.decision, comment=body.comment)
    return json_answer(_shown(row))


@router.get("/roots/{root}/rules")
def list_rules(request: HttpRequest, root: int) -> HttpResponse:
    """The rules that decide without asking."""
    return listed([rule_json(row) for row in rules_of(root_for(who_of(request), root, Permission.READ))], None)


@router.delete("/rules/{rule}")
def delete_rule(request: HttpRequest, rule: int) -> HttpResponse:
    """Ends a rule: what it allowed is asked again from now on."""
    return json_answer(rule_json(end_rule(who=who_of(request), rule=rule)))


def _shown(row: Approval) -> dict[str, object]:
    (found,) = approvals_json([row])
    return found


def _number(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not cursor.isdecimal() or len(cursor) > 18:
        raise Invalid("cursor", "This cursor is not one of ours. Start again without it.")
    return int(cursor)

"""Approvals: the team's queue and what was decided (A3, C1), and the forms that decide."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET, require_POST

from console.access import Permission, Who, may
from console.diffs import ROWS, Diff, hunks_of, patch
from console.markdown import rendered
from console.pages.numbers import number_in
from console.pages.view import page
from lineage.access import approval_for
from lineage.actions.approvals import approve_always, decide_approval, end_rule
from lineage.agent.rules import is_rule_of
from lineage.approvals import (
    DIFF_CHARACTERS,
    PAGE,
    decided_approvals,
    paths_of,
    preview_of,
    rules_seen,
    waiting_approvals,
    waiting_in,
)
from lineage.models import Approval, Conversation

WHY_CHARACTERS = 1_500  # of the prose before a call: its end is what led to the call


@dataclass(frozen=True, kw_only=True)
class Shown:
    """An approval as a page shows it. `path` leads from the root to who asks."""

    row: Approval
    path: list[Conversation]
    why: SafeString | str
    diff: Diff | None
    left_out: int  # rows of the diff that are not shown
    preview: dict[str, Any]
    may_decide: bool
    may_always: bool
    match: str  # what "always" would allow

    @property
    def asker(self) -> Conversation:
        return self.path[-1]


@require_GET
@page
def approvals(request: HttpRequest, who: Who) -> HttpResponse:
    """What waits, oldest first; with `?show=decided` what was decided, newest first."""
    return render(request, "console/approvals.html", _queue(request, who))


@require_GET
@page
def approvals_parts(request: HttpRequest, who: Who) -> HttpResponse:
    """A fragment: the queue as it is now."""
    return render(request, "console/approvals_parts.html", _queue(request, who))


@require_GET
@page
def approval_diff(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """The whole diff of an edit as text, `DIFF_CHARACTERS` of it from `?offset=` on."""
    row = approval_for(who, number)
    offset = number_in(request, "offset") or 0
    preview = preview_of(row, DIFF_CHARACTERS, offset)
    if "diff" not in preview or offset > preview["kept"]:
        raise Http404
    last = offset + len(preview["diff"])
    context = {
        "approval": row,
        "conversation": row.conversation,
        "preview": preview,
        "first": min(offset + 1, last),  # people count from one
        "last": last,
        "before": max(offset - DIFF_CHARACTERS, 0) if offset else None,
        "next": last if last < preview["kept"] else None,
    }
    return render(request, "console/approval_diff.html", context)


@require_POST
@page
def approval_decided(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """Approve, decline, or approve and make a rule of it; back to where the form stood."""
    decision, comment = request.POST.get("decision", ""), request.POST.get("comment", "")
    if decision == "always":
        row = approve_always(who=who, approval=number, match=request.POST.get("match", ""))
    else:
        row = decide_approval(who=who, approval=number, decision=decision, comment=comment)
    return redirect(_back(request, f"/approvals/?show=decided#a{row.pk}"))


@require_POST
@page
def rule_ended(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """What the rule allowed is asked again."""
    end_rule(who=who, rule=number)
    return redirect(_back(request, "/approvals/"))


def approvals_in(who: Who, conversation: Conversation) -> list[Shown]:
    """What waits in one conversation, for its page."""
    return shown_of(who, list(waiting_in(conversation)))


def shown_of(who: Who, rows: list[Approval]) -> list[Shown]:
    """The approvals with all that their pages need; roles are asked once per root."""
    paths = paths_of(row.conversation for row in rows)
    roots = {row.root_id for row in rows}
    decides = {root for root in roots if may(who, root, Permission.DECIDE)}
    manages = {root for root in roots if may(who, root, Permission.MANAGE)}
    found: list[Shown] = []
    for row in rows:
        preview = preview_of(row, DIFF_CHARACTERS)
        diff, left_out = _diff(preview)
        found.append(
            Shown(
                row=row,
                path=paths[row.conversation_id],
                why=_why(row.why),
                diff=diff,
                left_out=left_out,
                preview=preview,
                may_decide=row.root_id in decides,
                may_always=row.root_id in manages,
                match=is_rule_of(row.tool, row.arguments),
            )
        )
    return found


def _queue(request: HttpRequest, who: Who) -> dict[str, Any]:
    decided = request.GET.get("show") == "decided"
    before = number_in(request, "before")
    waiting = waiting_approvals(who)
    rows = decided_approvals(who) if decided else waiting
    if decided and before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows[: PAGE + 1])
    return {
        "decided": decided,
        "items": shown_of(who, found[:PAGE]),
        "more": found[PAGE - 1].pk if len(found) > PAGE else None,
        "waiting": waiting.count(),
        "rules": rules_seen(who),
        "here": request.get_full_path().replace("/parts/", "/"),
    }


def _why(prose: str) -> SafeString | str:
    cut = prose if len(prose) <= WHY_CHARACTERS else "…" + prose[-WHY_CHARACTERS:]
    return rendered(cut) if cut else ""


def _diff(preview: dict[str, Any]) -> tuple[Diff | None, int]:
    if "diff" not in preview:
        return None, 0
    found = patch(hunks_of(preview["diff"]))
    shown = Diff(rows=found.rows[:ROWS], added=preview["added"], removed=preview["removed"], left_out=0)
    return shown, len(found.rows) - len(shown.rows)


def _back(request: HttpRequest, otherwise: str) -> str:
    asked = request.POST.get("next", "")
    return asked if url_has_allowed_host_and_scheme(asked, allowed_hosts=None) else otherwise

"""The board: what needs a person, the roots, what happens now (C1). `?wall` is the same for a screen on the wall."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access import Permission, Who, roots_where
from console.board.queries import board_page, board_totals, feed, needs_you, rows_of
from console.pages.board_rows import FeedLine, RootRow, Wanted
from console.pages.numbers import numbers_in
from console.pages.view import page
from lineage.approvals import waiting_by_conversation

# Roots whose rows one refresh may ask for: what changes in a busy second.
CHANGED = 200


@require_GET
@page
def board(request: HttpRequest, who: Who) -> HttpResponse:
    order = "title" if request.GET.get("order") == "title" else "attention"
    shown = board_page(who, order=order, cursor=request.GET.get("cursor"))
    if not shown.total:
        return render(request, "console/board_empty.html", {})
    context = {
        "rows": [RootRow.of(row) for row in shown.rows],
        "shown": shown,
        "order": order,
        "wall": "wall" in request.GET,
        "totals": board_totals(who),
        **_now(who),
    }
    return render(request, "console/board.html", context)


@require_GET
@page
def board_parts(request: HttpRequest, who: Who) -> HttpResponse:
    """A fragment: what needs a person, the feed, and the rows of the roots in `?changed=`."""
    rows = [RootRow.of(row) for row in rows_of(who, numbers_in(request, "changed", CHANGED))]
    context = {"rows": rows, "totals": board_totals(who), **_now(who)}
    return render(request, "console/board_parts.html", context)


def _now(who: Who) -> dict[str, Any]:
    needs, needing = needs_you(who)
    asked = waiting_by_conversation([need.conversation for need in needs if need.state == "approval"])
    decides = roots_where(who, Permission.DECIDE, {need.root for need in needs if need.conversation in asked})
    return {
        "needs": [Wanted.of(need, asked.get(need.conversation, []), need.root in decides) for need in needs],
        "needing": needing,
        "feed": [FeedLine.of(line) for line in feed(who)],
    }

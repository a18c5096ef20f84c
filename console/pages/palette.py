"""What the palette lists: places that the reader may go to, as JSON."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from console.access import Who
from console.pages.view import page
from console.shown import STATES
from lineage.models import Conversation
from lineage.trees import PALETTE_ITEMS, conversations_matching


@require_GET
@page
def palette(request: HttpRequest, who: Who) -> HttpResponse:
    """`{items: [{label, url, icon, hint}], say}`: conversations by number, title or last use, then the search."""
    words = request.GET.get("q", "").strip()[:200]
    found = list(conversations_matching(who, words)[: PALETTE_ITEMS + 1])
    more = len(found) > PALETTE_ITEMS
    say = f"The newest {PALETTE_ITEMS} are shown; type more to narrow." if more and words else ""
    items = [_place(row) for row in found[:PALETTE_ITEMS]]
    if words:
        address = f"{reverse('search')}?{urlencode({'q': words})}"
        items.append({"label": f"Search everything for “{words}”", "url": address, "icon": "i-search", "hint": ""})
    return JsonResponse({"items": items, "say": say})


def _place(row: Conversation) -> dict[str, Any]:
    return {
        "label": row.title or f"#{row.pk}",
        "url": f"/conversations/{row.pk}/",
        "icon": f"s-{STATES[row.state][0]}",
        "hint": f"#{row.pk}",
    }

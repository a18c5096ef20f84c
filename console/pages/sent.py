"""What the model was sent, request by request (A1)."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access import Who
from console.pages.numbers import number_in
from console.pages.view import page
from lineage.access import conversation_for
from lineage.sent import PAGE, sent_requests


@require_GET
@page
def sent(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """The requests of a conversation, the newest first."""
    row = conversation_for(who, number)
    found = sent_requests(row, before=number_in(request, "before"), limit=PAGE + 1)
    context = {
        "conversation": row,
        "requests": found[:PAGE],
        "more": found[PAGE - 1].row.pk if len(found) > PAGE else None,
    }
    return render(request, "console/sent.html", context)

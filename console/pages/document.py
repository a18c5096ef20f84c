"""The page of one document: readable at once, live when its module runs (C1). What is live comes over the socket."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access import Permission, Who, may
from console.pages.view import page
from documents.access import document_for
from documents.limits import MAX_LENGTH
from documents.texts import text_at
from lineage.access import conversation_for
from lineage.trees import outline

BEGINNING = 64 * 1024
"""Characters that are in the page itself, for the first paint and for readers without JavaScript; more opens live."""


@require_GET
@page
def document(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    row = document_for(who, number)
    text = text_at(row, row.revision)
    can_edit = may(who, row.root_id, Permission.WRITE)
    root = conversation_for(who, row.conversation_id).root
    shape = outline(root)
    context = {
        "document": row,
        "outline": shape,
        "outline_count": f"{shape.total} conversation{'' if shape.total == 1 else 's'}",
        "is_tally": root.is_tally,
        "beginning": text[:BEGINNING],
        "beginning_length": min(len(text), BEGINNING),
        "length": len(text),
        "longest": MAX_LENGTH,
        "can_edit": can_edit,
        "boot": {
            "id": row.pk,
            "title": row.title,
            "revision": row.revision,
            "actor": who.actor,
            "name": who.name,
            "can_edit": can_edit,
            "root": row.root_id,
        },
    }
    return render(request, "documents/document.html", context)

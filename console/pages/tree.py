"""The page of a root: its tally as a timeline, the shape of its tree, memory and people (C1)."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access import Permission, Who, may
from console.clock import now
from console.pages.numbers import number_in, numbers_in
from console.pages.view import page
from documents.lists import newest_documents
from lineage.access import root_for
from lineage.models import Root
from lineage.state import root_usage
from lineage.timeline import beside_the_tally, counts, timeline, timeline_since
from lineage.trees import members_of, memory_index, outline

# Conversations whose lines one refresh may ask for: what changes in a busy second.
CHANGED = 200


@require_GET
@page
def tree(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    root = root_for(who, number)
    shown = timeline(root, before=number_in(request, "before"))
    documents, documents_total = newest_documents(root.pk)
    context = {
        "root": root,
        "documents": documents,
        "documents_total": documents_total,
        "timeline": shown,
        "beside": beside_the_tally(root),
        "may_write": may(who, root.pk, Permission.WRITE),
        "may_manage": may(who, root.pk, Permission.MANAGE),
        **_around(root),
    }
    return render(request, "console/tree.html", context)


@require_GET
@page
def tree_lines(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """A fragment: the lines before `?before=`."""
    root = root_for(who, number)
    shown = timeline(root, before=number_in(request, "before"))
    return render(request, "console/tree_lines.html", {"root": root, "timeline": shown})


@require_GET
@page
def tree_parts(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """A fragment: outline and facts, the lines after `?after=`, and those about `?changed=`."""
    root = root_for(who, number)
    lines = timeline_since(root, after=number_in(request, "after") or 0, about=numbers_in(request, "changed", CHANGED))
    context = {"root": root, "lines": lines, "beside": beside_the_tally(root), **_around(root)}
    return render(request, "console/tree_parts.html", context)


def _around(root: Root) -> dict[str, Any]:
    shape = outline(root)
    today = now().replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        "outline": shape,
        "outline_count": f"{shape.total} conversation{'' if shape.total == 1 else 's'}",
        "current": root.pk,
        "is_tally": root.is_tally,
        "counts": counts(root, since=today),
        "usage": root_usage(root.pk),
        "memory": memory_index(root),
        "members": members_of(root),
    }

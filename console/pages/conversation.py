"""The page of one conversation, and its parts as they change (C1, C3)."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access import Permission, Who, may
from console.errors import Invalid
from console.pages.approvals import approvals_in
from console.pages.entries import messages_of
from console.pages.facts import facts_of
from console.pages.numbers import number_in
from console.pages.reading import part_after, part_at, part_before, whole_unit
from console.pages.view import page
from documents.attachments.gathered import PICTURES
from documents.attachments.limits import NAMED, UPLOAD_BYTES
from documents.attachments.queries import attachment_json
from lineage.access import conversation_for
from lineage.models import Conversation, Kind
from lineage.queries import entries_after, prompts_of, unsent_attachments
from lineage.transcripts.blocks import images_of
from lineage.trees import outline

# Ticks of the minimap: more would stand closer than a pointer can tell apart. The pane lists every prompt.
MINIMAP = 40
PROMPTS_LISTED = 500


@require_GET
@page
def conversation(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """The newest entries, or those around `?at=`."""
    row = conversation_for(who, number)
    if row.kind == Kind.ROOT and row.root.is_tally:
        return HttpResponseRedirect(f"/roots/{row.pk}/")
    at = number_in(request, "at")
    part = part_at(row, at) if at else part_before(row)
    context = {
        "conversation": row,
        "part": part,
        "units": part.units,
        "at": at,
        "may_write": may(who, row.root_id, Permission.WRITE),
        "may_decide": may(who, row.root_id, Permission.DECIDE),
        "approvals": approvals_in(who, row),
        "unsent": [attachment_json(found) for found in unsent_attachments(row.pk, author=who.actor)],
        "upload_bytes": UPLOAD_BYTES,
        "most_attachments": NAMED,
        **_prompts(row),
        **_around(row),
        **facts_of(row),
    }
    return render(request, "console/conversation.html", context)


@require_GET
@page
def conversation_entries(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """A fragment: the page before `?before=`, or what came after `?after=`."""
    row = conversation_for(who, number)
    before, after = number_in(request, "before"), number_in(request, "after")
    if after is not None:
        part, edge = part_after(row, after), "newer"
    elif before is not None:
        part, edge = part_before(row, before), "older"
    else:
        raise Invalid("before", "Say which entries: before=N or after=N.")
    context = {"conversation": row, "part": part, "units": part.units, "edge": edge, **_parent(row)}
    return render(request, "console/conversation_entries.html", context)


@require_GET
@page
def conversation_entry(request: HttpRequest, who: Who, number: int, seq: int) -> HttpResponse:
    """A fragment: one entry with nothing left out."""
    row = conversation_for(who, number)
    unit = whole_unit(row, seq)
    if unit is None:
        raise Http404
    return render(request, "console/_entries.html#units", {"conversation": row, "units": [unit], **_parent(row)})


@require_GET
@page
def conversation_parts(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """A fragment: what is not an entry and changes as a whole: head, queue, approvals, facts; with `?prompts=1` those too."""
    row = conversation_for(who, number)
    context = {
        "conversation": row,
        "may_write": may(who, row.root_id, Permission.WRITE),
        "may_decide": may(who, row.root_id, Permission.DECIDE),
        "approvals": approvals_in(who, row),
        **(_prompts(row) if request.GET.get("prompts") else {}),
        **_parent(row),
        **facts_of(row),
    }
    return render(request, "console/conversation_parts.html", context)


@require_GET
@page
def entry_image(request: HttpRequest, who: Who, number: int, seq: int, image: int) -> HttpResponse:
    """One picture of an entry. Entries never change, so the browser may keep it."""
    row = conversation_for(who, number)
    entries = entries_after(row, after=seq - 1, limit=1)
    images = images_of(messages_of(entries[0])) if entries and entries[0].seq == seq else []
    # Pictures of agents and transcripts are untrusted: only these are sent, as what they are and never as a page.
    if image >= len(images) or images[image][0] not in PICTURES:
        raise Http404
    kind, data = images[image]
    headers = {
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Content-Disposition": "inline",
        "Cache-Control": "private, max-age=86400",
    }
    return HttpResponse(data, content_type=kind, headers=headers)


def _prompts(row: Conversation) -> dict[str, Any]:
    asked = prompts_of(row)
    prompts = list(asked.order_by("-seq")[:PROMPTS_LISTED])[::-1]
    return {
        "prompts": prompts,
        "prompts_total": asked.count() if len(prompts) == PROMPTS_LISTED else len(prompts),
        "ticks": prompts[-MINIMAP:],
    }


def _around(row: Conversation) -> dict[str, Any]:
    shape = outline(row.root, row.pk)
    return {
        "outline": shape,
        "outline_count": f"{shape.total} conversation{'' if shape.total == 1 else 's'}",
        "current": row.pk,
        "is_tally": row.root.is_tally,
        **_parent(row),
    }


def _parent(row: Conversation) -> dict[str, Any]:
    parent = row.parent
    return {
        "parent_title": parent.title if parent else "",
        "parent_url": f"/conversations/{parent.pk}/?at={row.at}#e{row.at}" if parent else "",
    }

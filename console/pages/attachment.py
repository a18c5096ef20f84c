"""The page of an attachment: a part of its text, where that part lies, what was cut and why (C1, D20)."""

from typing import Any

from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access import Who
from console.errors import DomainError, NotFound
from console.pages.numbers import number_in
from console.pages.view import page
from documents.attachments.access import attachment_for, read_attachment
from documents.attachments.gathered import PICTURES
from documents.attachments.limits import EXTRACTION_CHARS, PAGE_CHARS
from documents.attachments.reading import Page
from documents.attachments.storing import attachments_folder
from documents.models import AttachmentStatus
from lineage.access import conversation_for

# `PICTURES` are shown as such. Everything else is only ever saved: what was uploaded must not run as a page of ours (S3).


@require_GET
@page
def attachment(request: HttpRequest, who: Who, name: str) -> HttpResponse:
    """The text from `?offset=` on, `PAGE_CHARS` characters of it."""
    row = attachment_for(who, name)
    context: dict[str, Any] = {
        "attachment": row,
        "conversation": conversation_for(who, row.conversation_id),
        "picture": row.media_type in PICTURES,
        "kept": EXTRACTION_CHARS,
    }
    if row.status == AttachmentStatus.EXTRACTED:
        try:
            context |= _part(read_attachment(who=who, name=name, offset=number_in(request, "offset") or 0))
        except DomainError as refusal:
            context["refusal"] = refusal
    return render(request, "console/attachment.html", context)


@require_GET
@page
def attachment_file(request: HttpRequest, who: Who, name: str) -> HttpResponse:
    """The uploaded file itself: pictures to be shown, all else to be saved."""
    row = attachment_for(who, name)
    shown = row.media_type in PICTURES
    try:
        file = (attachments_folder() / row.name).open("rb")
    except FileNotFoundError:
        raise NotFound("file of attachment", row.name) from None
    response = FileResponse(
        file,
        as_attachment=not shown,
        filename=row.filename,
        content_type=row.media_type if shown else "application/octet-stream",
    )
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response  # type: ignore[return-value]


def _part(part: Page) -> dict[str, Any]:
    end = part.offset + len(part.text)
    return {
        "part": part,
        "first": min(part.offset + 1, end),  # people count from one
        "last": end,
        "before": max(part.offset - PAGE_CHARS, 0) if part.offset else None,
        "end": (part.total_chars - 1) // PAGE_CHARS * PAGE_CHARS if part.truncated else None,
    }

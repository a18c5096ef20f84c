"""HTTP calls on attachments (CONTRACT, HTTP; D18-D21)."""

from django.http import HttpRequest, HttpResponse
from ninja import File, Form, Router
from ninja.files import UploadedFile

from console.answers import json_answer, listed, who_of
from documents.attachments.access import read_attachment
from documents.attachments.queries import attachment_json, attachments_of
from documents.attachments.storing import refuse_too_large
from lineage.access import conversation_for
from lineage.actions.attachments import record_reading, take_back_attachment, upload_attachment
from lineage.loading import visible_ranges

router = Router(tags=["attachments"])


@router.post("/conversations/{conversation}/attachments")
def post_attachment(
    request: HttpRequest, conversation: int, file: File[UploadedFile], request_id: Form[str | None] = None
) -> HttpResponse:
    """Keeps a file and orders its extraction; answers its name, which reading asks for, and its status."""
    refuse_too_large(file.size or 0)
    row = upload_attachment(
        who=who_of(request),
        conversation=conversation,
        filename=file.name or "",
        chunks=file.chunks(),
        request_id=request_id,
    )
    return json_answer(attachment_json(row))


@router.get("/conversations/{conversation}/attachments")
def list_attachments(request: HttpRequest, conversation: int) -> HttpResponse:
    """The attachments that the conversation sees: its own and those of the conversations it was forked from."""
    row = conversation_for(who_of(request), conversation)
    return listed([attachment_json(found) for found in attachments_of(row.pk, visible_ranges(row))], None)


@router.get("/attachments/{path:name}")
def get_attachment(
    request: HttpRequest, name: str, offset: str | None = None, limit: str | None = None
) -> HttpResponse:
    """A page of the extracted text. Offsets and limits count characters; `next_offset` stands while more follows."""
    who = who_of(request)
    part = read_attachment(who=who, name=name, offset=offset or 0, limit=limit)
    record_reading(who=who, name=part.name, upto=part.offset + len(part.text))
    return json_answer(part)


@router.delete("/attachments/{path:name}")
def delete_attachment(request: HttpRequest, name: str) -> HttpResponse:
    """Takes back a file that no input has brought yet, with all that was made of it."""
    take_back_attachment(who=who_of(request), name=name)
    return HttpResponse(status=204)

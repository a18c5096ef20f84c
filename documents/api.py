"""HTTP calls on documents (CONTRACT, HTTP). Parse, call one action or query, render (R1).

Bodies with text are read through the one door for JSON, so that text which no document can hold is refused by its name.
"""

from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema

from console.answers import json_answer, listed, who_of
from console.events import encode_json
from console.json_door import read_json
from documents.actions import create_document, rename_document
from documents.batch_json import recorded_event
from documents.edits import Edit
from documents.forks import Seen
from documents.gathering import gatherer
from documents.models import EditBatch
from documents.reading import (
    BATCHES_PAGE,
    actor_json,
    list_documents,
    read_authors,
    read_document,
    read_text,
    recorded_batches,
)

router = Router(tags=["documents"])


class DocumentIn(msgspec.Struct):
    title: str
    text: str = ""
    request_id: str | None = None


class EditsIn(msgspec.Struct):
    edits: list[Edit]
    request_id: str | None = None
    conversation: int | None = None


class TitleIn(Schema):
    title: str
    request_id: str | None = None


class Place(Schema):
    """`conversation`: as a fork of the tree sees it (D9); a token looks from its own conversation."""

    revision: int | None = None
    conversation: int | None = None


class BatchesPage(Schema):
    after: int = 0
    limit: int = BATCHES_PAGE
    conversation: int | None = None


def _body(shape: type[msgspec.Struct]) -> dict[str, Any]:
    """The OpenAPI description of a body that the call reads itself."""
    (schema,), components = msgspec.json.schema_components([shape], ref_template="#/{name}")
    described = components[schema["$ref"].removeprefix("#/")]
    for name, found in described["properties"].items():
        if found.get("items", {}).get("$ref"):
            described["properties"][name]["items"] = components[found["items"]["$ref"].removeprefix("#/")]
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": described}}}}


@router.get("/conversations/{conversation}/documents")
def get_documents(request: HttpRequest, conversation: int) -> HttpResponse:
    """The documents that the conversation sees: the root's, what it inherits, its own."""
    return listed([_seen_json(seen) for seen in list_documents(who=who_of(request), conversation=conversation)], None)


@router.post("/conversations/{conversation}/documents", openapi_extra=_body(DocumentIn))
def post_document(request: HttpRequest, conversation: int) -> HttpResponse:
    """Makes a document of at most 2 Mi code points; without text it holds one line break."""
    body = read_json(request.body, DocumentIn)
    document = create_document(
        who=who_of(request),
        conversation=conversation,
        title=body.title,
        text=body.text,
        request_id=body.request_id,
    )
    return json_answer({"id": document.pk, "revision": document.revision})


@router.get("/documents/{document}")
def get_document(request: HttpRequest, document: int, place: Query[Place]) -> HttpResponse:
    """The text, at a revision or the newest."""
    reading = read_document(
        who=who_of(request), document=document, revision=place.revision, conversation=place.conversation
    )
    row = reading.document
    return json_answer(
        {
            "id": row.pk,
            "title": row.title,
            "revision": reading.revision,
            "newest": reading.newest,
            "conversation": row.conversation_id,
            "root": row.root_id,
            "live": reading.live,
            "text": read_text(reading),
        }
    )


@router.patch("/documents/{document}")
def patch_document(request: HttpRequest, document: int, body: TitleIn) -> HttpResponse:
    """Gives it another title."""
    row = rename_document(who=who_of(request), document=document, title=body.title, request_id=body.request_id)
    return json_answer({"id": row.pk, "title": row.title})


@router.post("/documents/{document}/edits", openapi_extra=_body(EditsIn))
async def post_edits(request: HttpRequest, document: int) -> HttpResponse:
    """Records one batch of replace-exactly-once edits, all or nothing, and answers after the commit."""
    body = read_json(request.body, EditsIn)
    accepted = await gatherer().edit(
        who=who_of(request),
        document=document,
        edits=body.edits,
        request_id=body.request_id,
        conversation=body.conversation,
    )
    return json_answer({"revision": accepted.revision, "document": accepted.document})


@router.get("/documents/{document}/batches")
def get_batches(request: HttpRequest, document: int, page: Query[BatchesPage]) -> HttpResponse:
    """Recorded batches after a revision, in order; `next` is the `after` of the next page."""
    rows, more = recorded_batches(
        who=who_of(request),
        document=document,
        after=page.after,
        limit=page.limit,
        conversation=page.conversation,
    )
    return listed([_batch_json(row) for row in rows], str(rows[-1].revision) if more else None)


@router.get("/documents/{document}/authors")
def get_authors(request: HttpRequest, document: int, place: Query[Place]) -> HttpResponse:
    """Who wrote which part: runs `[actor, length in code points]` in order, and who the actors are."""
    reading = read_document(
        who=who_of(request), document=document, revision=place.revision, conversation=place.conversation
    )
    runs, actors = read_authors(reading)
    return json_answer(
        {
            "items": runs,
            "next": None,
            "revision": reading.revision,
            "actors": [actor_json(actor) for actor in actors],
        }
    )


def _seen_json(seen: Seen) -> dict[str, Any]:
    row = seen.document
    return {
        "id": row.pk,
        "title": row.title,
        "revision": seen.revision,
        "conversation": row.conversation_id,
        "root": row.root_id,
        "live": seen.live,
        "created": row.created.isoformat(),
        "creator": row.creator_id,
    }


def _batch_json(row: EditBatch) -> msgspec.Raw:
    """The event of the stream, and when it was recorded."""
    event = bytes(recorded_event(row))
    extra = encode_json({"revision": row.revision, "time": row.time.isoformat(), "head": row.head})
    return msgspec.Raw(event[:-1] + b"," + extra[1:])

"""`GET /api/search` (CONTRACT, C5)."""

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Router, Schema

from console.answers import json_answer, who_of
from console.search.finding import PAGE, search
from console.search.keeping import waiting

router = Router(tags=["search"])


class Asked(Schema):
    """`q`: words that must all occur, "words in this order", -not this one; the last word of each may go on."""

    q: str = ""
    root: int | None = None
    kind: list[str] = Field(default_factory=list)
    cursor: str | None = None
    limit: int = PAGE


@router.get("/search")
def get_search(request: HttpRequest, asked: Query[Asked]) -> HttpResponse:
    """Entries, documents, memories and titles, the newest first. `pending`: conversations not read to their end yet."""
    items, following = search(
        who=who_of(request),
        asked=asked.q,
        root=asked.root,
        kinds=asked.kind,
        cursor=asked.cursor,
        limit=asked.limit,
    )
    return json_answer({"items": [item.as_json() for item in items], "next": following, "pending": waiting()})

"""HTTP calls on roots, conversations and entries (CONTRACT, HTTP). Parse, call one action or query, render (R1)."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema

from console.answers import json_answer, listed, who_of
from console.errors import Invalid
from lineage.access import conversation_for, visible_roots
from lineage.actions.entries import append_entries
from lineage.actions.roots import create_root
from lineage.models import Conversation, Root
from lineage.outside import OutsideEntry, new_entries
from lineage.queries import LONGEST_PAGE, PAGE, entries_after, entries_before, entries_json
from lineage.state import own_usage, subtree_usage

router = Router(tags=["lineage"])

ROOTS_PAGE = 100


class RootIn(Schema):
    title: str
    folder: str = ""
    request_id: str | None = None


class EntryIn(Schema):
    kind: str
    model: list[dict[str, Any]] | None = None
    data: dict[str, Any] | None = None


class EntriesIn(Schema):
    entries: list[EntryIn]
    request_id: str | None = None


class EntriesPage(Schema):
    """`after` pages upwards, `before` downwards; without either the newest page."""

    after: int | None = None
    before: int | None = None
    limit: int = PAGE
    inherited: bool = False


@router.get("/roots")
def list_roots(request: HttpRequest, cursor: str | None = None) -> HttpResponse:
    """The roots that you may see, the newest first."""
    rows = visible_roots(who_of(request)).select_related("conversation").order_by("-pk")
    below = _number(cursor)
    if below is not None:
        rows = rows.filter(pk__lt=below)
    found = list(rows[: ROOTS_PAGE + 1])
    more = str(found[ROOTS_PAGE - 1].pk) if len(found) > ROOTS_PAGE else None
    return listed([_root_json(root) for root in found[:ROOTS_PAGE]], more)


@router.post("/roots")
def post_root(request: HttpRequest, body: RootIn) -> HttpResponse:
    """Makes an empty root; you become its owner."""
    root = create_root(who=who_of(request), title=body.title, folder=body.folder, request_id=body.request_id)
    return json_answer(_root_json(root))


@router.get("/conversations/{conversation}")
def get_conversation(request: HttpRequest, conversation: int) -> HttpResponse:
    """Title, kind, place in the tree, state, head, usage own and subtree."""
    return json_answer(_conversation_json(conversation_for(who_of(request), conversation)))


@router.get("/conversations/{conversation}/entries")
def list_entries(request: HttpRequest, conversation: int, page: Query[EntriesPage]) -> HttpResponse:
    """Entries in ascending order; `next` is the `after` (or, going down, the `before`) of the next page."""
    row = conversation_for(who_of(request), conversation)
    if not 1 <= page.limit <= LONGEST_PAGE:
        raise Invalid("limit", f"limit is 1 to {LONGEST_PAGE}; this is {page.limit}.", limit=LONGEST_PAGE)
    if page.after is not None:
        found = entries_after(row, after=page.after, before=page.before, limit=page.limit + 1, inherited=page.inherited)
        shown = found[: page.limit]
        return listed(entries_json(shown), str(shown[-1].seq) if len(found) > page.limit else None)
    found = entries_before(row, before=page.before, limit=page.limit + 1, inherited=page.inherited)
    shown = found[-page.limit :]
    return listed(entries_json(shown), str(shown[0].seq) if len(found) > page.limit else None)


@router.post("/conversations/{conversation}/entries")
def post_entries(request: HttpRequest, conversation: int, body: EntriesIn) -> HttpResponse:
    """Appends the entries of an outside runner; answers their numbers."""
    who = who_of(request)
    entries = new_entries([OutsideEntry(**entry.dict()) for entry in body.entries], author=who.actor)
    seqs = append_entries(who=who, conversation=conversation, entries=entries, request_id=body.request_id)
    return json_answer({"entries": seqs, "head": seqs[-1]})


def _root_json(root: Root) -> dict[str, Any]:
    row = root.conversation
    return {
        "id": root.pk,
        "title": row.title,
        "folder": row.folder,
        "since": root.since,
        "state": row.state,
        "head": row.head,
        "created": row.created.isoformat(),
        "touched": row.touched.isoformat(),
    }


def _conversation_json(row: Conversation) -> dict[str, Any]:
    return {
        "id": row.pk,
        "title": row.title,
        "kind": row.kind,
        "root": row.root_id,
        "parent": row.parent_id,
        "at": row.at or None,
        "owner": row.owner_id,
        "state": row.state,
        "why": row.state_why,
        "since": row.state_since.isoformat(),
        "head": row.head,
        "folder": row.folder,
        "source": row.source,
        "usage": {"own": own_usage(row.pk), "subtree": subtree_usage(row.pk)},
    }


def _number(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not cursor.isdecimal() or len(cursor) > 18:
        raise Invalid("cursor", "This cursor is not one of ours. Start again without it.")
    return int(cursor)

"""Finding: the newest texts first that hold all words of a question, of the roots that the reader may see (C5, R8)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

from console.access import Who
from console.errors import DomainError, Invalid
from console.search.excerpts import excerpt
from console.search.models import SearchKind, SearchRow
from console.search.words import QUESTION_LENGTH, Question, question_of
from documents.models import Document
from lineage.access import root_for, visible_roots
from lineage.models import Conversation

PAGE = 25
LONGEST_PAGE = 100
PATIENCE_MS = 4_000  # of one search; longer ones are refused with what to do


@dataclass(frozen=True, kw_only=True)
class Found:
    """One place. `marks` are (from, to) in the excerpt, in code points; `cut`: the text is longer than what is searched."""

    kind: str
    root: int
    conversation: int
    title: str  # of the conversation, or the document
    at: int | None  # the entry's number
    document: int | None
    slug: str
    excerpt: str
    marks: list[tuple[int, int]]
    cut: bool
    time: datetime

    @property
    def href(self) -> str:
        match self.kind:
            case SearchKind.ENTRY:
                return f"/conversations/{self.conversation}/?at={self.at}#e{self.at}"
            case SearchKind.DOCUMENT:
                return f"/documents/{self.document}/"
            case SearchKind.MEMORY:
                return f"/roots/{self.root}/memory/?slug={self.slug}#one"
            case _:
                return (
                    f"/roots/{self.root}/" if self.root == self.conversation else f"/conversations/{self.conversation}/"
                )

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "root": self.root,
            "conversation": self.conversation,
            "title": self.title,
            "at": self.at,
            "document": self.document,
            "slug": self.slug or None,
            "excerpt": self.excerpt,
            "marks": self.marks,
            "cut": self.cut,
            "time": self.time.isoformat(),
            "href": self.href,
        }


def search(
    *,
    who: Who,
    asked: str,
    root: int | None = None,
    kinds: Collection[str] = (),
    cursor: str | None = None,
    limit: int = PAGE,
) -> tuple[list[Found], str | None]:
    """A page of what was found, and the cursor of the next. Refusals: `invalid`, `not_found` for a root, `too_common`."""
    question = _question(asked)
    if not 1 <= limit <= LONGEST_PAGE:
        raise Invalid("limit", f"limit is 1 to {LONGEST_PAGE}; this is {limit}.", limit=LONGEST_PAGE)
    unknown = sorted(set(kinds) - set(SearchKind.values))
    if unknown:
        raise Invalid("kind", f"kind is one of {', '.join(SearchKind.values)}; this is {unknown[0]!r}.")
    rows = _rows(question, _roots(who, root), kinds, _place(cursor), limit + 1)
    shown = rows[:limit]
    following = f"{shown[-1].time.isoformat()},{shown[-1].pk}" if len(rows) > limit else None
    return _found(shown, question), following


def _question(asked: str) -> Question:
    if len(asked) > QUESTION_LENGTH:
        raise Invalid(
            "q", f"A question has at most {QUESTION_LENGTH} characters; this has {len(asked)}.", limit=QUESTION_LENGTH
        )
    question = question_of(asked)
    if question is None:
        raise Invalid("q", "Search for at least one word; a word with a minus is one that must not be there.")
    return question


def _roots(who: Who, root: int | None) -> list[int] | None:
    """The roots to look in; none for all there are."""
    if root is not None:
        return [root_for(who, root).pk]
    if who.superuser and who.token is None and not who.inside:
        return None
    return list(visible_roots(who).values_list("pk", flat=True))


def _place(cursor: str | None) -> tuple[datetime, int] | None:
    if not cursor:
        return None
    time, _, number = cursor.partition(",")
    try:
        found = datetime.fromisoformat(time)
        if found.tzinfo is None:
            raise ValueError
        return found, int(number)
    except ValueError:
        raise Invalid("cursor", "This is not a cursor of a search.") from None


def _rows(
    question: Question, roots: list[int] | None, kinds: Collection[str], place: tuple[datetime, int] | None, limit: int
) -> list[SearchRow]:
    """The first piece of each text that holds all words, the newest first."""
    conditions: list[str] = ["r.words @@ q.query"]
    values: list[Any] = [question.query]
    if roots is not None:
        conditions.append("r.root = ANY(%s)")
        values.append(roots)
    if kinds:
        conditions.append("r.kind = ANY(%s)")
        values.append(list(kinds))
    if place is not None:
        conditions.append("(r.time, r.id) < (%s, %s)")
        values += place
    statement = f"""
        SELECT r.id, r.root, r.conversation, r.kind, r.place, r.slug, r.part, r.text, r.cut, r.time
        FROM to_tsquery('simple', %s) AS q(query), console_searchrow r
        WHERE {" AND ".join(conditions)} AND NOT EXISTS (
            SELECT FROM console_searchrow p WHERE p.conversation = r.conversation AND p.kind = r.kind
                AND p.place = r.place AND p.slug = r.slug AND p.part < r.part AND p.words @@ q.query)
        ORDER BY r.time DESC, r.id DESC LIMIT %s
        """  # noqa: S608 -- the conditions are written above
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {PATIENCE_MS}")
            return list(SearchRow.objects.raw(statement, [*values, limit]))
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            message = "That occurs in too many places to look at them all. Add a word, or choose a root."
            raise DomainError("too_common", message) from error
        raise


def _found(rows: Sequence[SearchRow], question: Question) -> list[Found]:
    conversations = Conversation.objects.in_bulk({row.conversation for row in rows})
    documents = Document.objects.in_bulk({row.place for row in rows if row.kind == SearchKind.DOCUMENT})
    found: list[Found] = []
    for row in rows:
        conversation = conversations.get(row.conversation)
        document = documents.get(row.place) if row.kind == SearchKind.DOCUMENT else None
        if conversation is None or (row.kind == SearchKind.DOCUMENT and document is None):
            continue  # erased since it was read
        line, marks = excerpt(row.text, question.marked)
        found.append(
            Found(
                kind=row.kind,
                root=row.root,
                conversation=row.conversation,
                title=document.title if document is not None else conversation.title,
                at=row.place if row.kind == SearchKind.ENTRY else None,
                document=document.pk if document is not None else None,
                slug=row.slug,
                excerpt=line,
                marks=marks,
                cut=row.cut,
                time=row.time,
            )
        )
    return found

"""The search keeper (C5): reads what is new of conversations, their titles, memories and documents, a bounded part each time.

The board keeper says which conversations have something new; documents are asked for their revisions. What is interrupted is
read again: rows of a text are replaced by its key.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import F, OuterRef, Q, Subquery

from console.clock import now
from console.json_text import storable
from console.marks import take_marks
from console.search.models import SearchDue, SearchKind, SearchMark, SearchRow
from console.search.texts import text_of
from console.search.words import PIECES, pieces_of, words_of
from documents.models import Document
from documents.texts import text_at
from lineage.models import Conversation, Entry, Kind, Memory

CONVERSATIONS = 50  # of one step
ENTRIES = 400  # of one step: about a tenth of a second
DOCUMENTS = 4  # of one step: each may be 2 Mi characters
DOCUMENT_REST = timedelta(seconds=20)  # a document that is being typed in is not read again before


@dataclass(frozen=True, kw_only=True)
class Text:
    """One text to be found, by its key."""

    root: int
    conversation: int
    kind: SearchKind
    text: str
    time: datetime
    place: int = 0
    slug: str = ""


def read_due() -> bool:
    """Reads some of the conversations that have something new; whether there is more to do at once."""
    with transaction.atomic():
        taken = take_marks(SearchDue, CONVERSATIONS)
        if not taken:
            return False
        rows = list(Conversation.objects.filter(pk__in=taken).order_by("pk"))
        _keep([_title(row) for row in rows if row.title])
        for row in rows:
            if row.kind == Kind.ROOT:
                _read_memories(row.pk)
        behind = _read_entries(rows)
        SearchDue.objects.bulk_create(SearchDue(conversation=pk) for pk in behind)
    return bool(behind) or len(taken) >= CONVERSATIONS


def read_documents() -> bool:
    """Reads some of the documents that were edited or renamed since; whether there may be more."""
    marks = SearchMark.objects.filter(kind="document", place=OuterRef("pk"))
    rows = Document.objects.annotate(
        now_at=F("revision") + F("title_version"),
        upto=Subquery(marks.values("upto")),
        read=Subquery(marks.values("time")),
    )
    late = Q(upto=None) | Q(upto__lt=F("now_at"), read__lt=now() - DOCUMENT_REST)
    due = list(rows.filter(late).order_by("pk")[:DOCUMENTS])
    for row in due:
        with transaction.atomic():
            text = f"{row.title}\n{text_at(row, row.revision)}"
            SearchRow.objects.filter(conversation=row.conversation_id, kind=SearchKind.DOCUMENT, place=row.pk).delete()
            _keep(
                [
                    Text(
                        root=row.root_id,
                        conversation=row.conversation_id,
                        kind=SearchKind.DOCUMENT,
                        place=row.pk,
                        text=text,
                        time=now(),
                    )
                ]
            )
            _mark("document", {row.pk: row.revision + row.title_version})
    return len(due) >= DOCUMENTS


def waiting() -> int:
    """Conversations that have something that is not found yet, about."""
    return SearchDue.objects.values("conversation").distinct().count()


def _title(row: Conversation) -> Text:
    return Text(root=row.root_id, conversation=row.pk, kind=SearchKind.TITLE, text=row.title, time=row.touched)


def _read_memories(root: int) -> None:
    """A root has at most 400: those that changed are read anew, those that are gone are forgotten."""
    kept = dict(SearchRow.objects.filter(conversation=root, kind=SearchKind.MEMORY).values_list("slug", "time"))
    there = dict(Memory.objects.filter(root=root).values_list("slug", "changed"))
    gone = [slug for slug in kept if slug not in there]
    if gone:
        SearchRow.objects.filter(conversation=root, kind=SearchKind.MEMORY, slug__in=gone).delete()
    changed = [slug for slug, time in there.items() if kept.get(slug) != time]
    _keep(
        [
            Text(
                root=root,
                conversation=root,
                kind=SearchKind.MEMORY,
                slug=memory.slug,
                text=f"{memory.line}\n{memory.body}\n{memory.slug}",
                time=memory.changed,
            )
            for memory in Memory.objects.filter(root=root, slug__in=changed)
        ]
    )


def _read_entries(rows: Sequence[Conversation]) -> list[int]:
    """Entries above what was read of each, `ENTRIES` in all; the conversations that have more."""
    marks = dict(
        SearchMark.objects.filter(kind="entry", place__in=[row.pk for row in rows]).values_list("place", "upto")
    )
    left, behind, read, texts = ENTRIES, [], {}, []
    for row in rows:
        upto = marks.get(row.pk, row.at)
        if row.head <= upto:
            continue
        if not left:
            behind.append(row.pk)
            continue
        found = list(
            Entry.objects.filter(conversation=row, seq__gt=upto, seq__lte=row.head)
            .order_by("seq")
            .only("seq", "model", "data", "time")[:left]
        )
        left -= len(found)
        texts += [_text_of_entry(row, entry) for entry in found]
        read[row.pk] = found[-1].seq if found else row.head
        if read[row.pk] < row.head:
            behind.append(row.pk)
    _keep(texts)
    _mark("entry", read)
    return behind


def _text_of_entry(row: Conversation, entry: Entry) -> Text:
    text = text_of(model=entry.model, data=entry.data)
    return Text(
        root=row.root_id, conversation=row.pk, kind=SearchKind.ENTRY, place=entry.seq, text=text, time=entry.time
    )


def _keep(texts: Iterable[Text]) -> None:
    """The pieces of these texts, in one statement; a piece that is there already is written over."""
    rows = [
        (
            text.root, text.conversation, text.kind.value, text.place, text.slug, part, piece,
            " ".join(words_of(piece)), cut, text.time,
        )
        for text in texts
        for part, (piece, cut) in enumerate(pieces_of(storable(text.text), PIECES[text.kind]))
        if piece.strip()
    ]  # fmt: skip
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO console_searchrow (root, conversation, kind, place, slug, part, text, words, cut, time)
            SELECT root, conversation, kind, place, slug, part, text, to_tsvector('simple', words), cut, time
            FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::int[], %s::text[],
                %s::text[], %s::boolean[], %s::timestamptz[])
                AS r(root, conversation, kind, place, slug, part, text, words, cut, time)
            ON CONFLICT (conversation, kind, place, slug, part)
            DO UPDATE SET text = excluded.text, words = excluded.words, cut = excluded.cut, time = excluded.time
            """,
            [list(column) for column in zip(*rows, strict=True)],
        )


def _mark(kind: str, read: Mapping[int, int]) -> None:
    SearchMark.objects.bulk_create(
        [SearchMark(kind=kind, place=place, upto=upto, time=now()) for place, upto in read.items()],
        update_conflicts=True,
        unique_fields=["kind", "place"],
        update_fields=["upto", "time"],
    )

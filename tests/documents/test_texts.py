"""Opening any revision, snapshots, authors (D4, D7, D15)."""

from unittest import mock

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from console.access import Who
from console.errors import DomainError
from documents import texts
from documents.actions import NewBatch, append_batches, edit_document, editing, tend_document
from documents.author_runs import advance_authors, authors_at
from documents.authorship import fold_authors
from documents.edits import Edit, apply_edits
from documents.models import AuthorRuns, Document, EditBatch, Snapshot
from documents.texts import SNAPSHOT_BATCHES, SNAPSHOT_BYTES, TEXTS, Opened, TextCache, decode_edits, text_at
from tests.factories import change, make_agent, make_document, make_person, make_root

pytestmark = pytest.mark.django_db


def counter(who: Who, conversation: int) -> Document:
    """A document that says how often it was edited."""
    return make_document(who, conversation, "count 0")


def record(who: Who, document: Document, upto: int) -> list[Snapshot]:
    """Edit it until it says `upto`, in one group; the snapshots that are due then."""
    start = Document.objects.get(pk=document.pk).revision
    edits = [[Edit(f"count {n}", f"count {n + 1}")] for n in range(start, upto)]
    appended = append_batches(document=document.pk, batches=[NewBatch(who=who, edits=one) for one in edits])
    document.refresh_from_db()
    assert document.revision == upto
    return appended.snapshots


def count(who: Who, document: Document, upto: int) -> None:
    """The same, with what is due after the answer."""
    tend_document(document=document.pk, snapshots=record(who, document, upto))


def kept_at(document: Document) -> list[int]:
    return list(Snapshot.objects.filter(document=document).order_by("revision").values_list("revision", flat=True))


def test_any_revision_opens_from_a_snapshot_and_few_batches() -> None:
    mira = make_person()
    document = counter(mira, make_root(mira).pk)
    count(mira, document, 2 * SNAPSHOT_BATCHES + 3)
    document.refresh_from_db()
    assert kept_at(document) == [0, SNAPSHOT_BATCHES, 2 * SNAPSHOT_BATCHES]
    for revision in (0, 1, SNAPSHOT_BATCHES - 1, SNAPSHOT_BATCHES, 2 * SNAPSHOT_BATCHES - 1, document.revision):
        TEXTS.forget(document.pk)
        with (
            mock.patch.object(texts, "apply_edits", wraps=apply_edits) as folded,
            CaptureQueriesContext(connection) as queries,
        ):
            assert text_at(document, revision) == f"count {revision}"
        assert folded.call_count < SNAPSHOT_BATCHES
        assert len(queries) <= 2


def test_what_is_kept_in_the_process_is_folded_on() -> None:
    """D11: another process recorded meanwhile; what is missing is read, and nothing else."""
    mira = make_person()
    document = counter(mira, make_root(mira).pk)
    count(mira, document, 3)
    TEXTS.forget(document.pk)
    TEXTS.keep(document.pk, Opened(1, "count 1"))
    document.refresh_from_db()
    with CaptureQueriesContext(connection) as queries:
        assert text_at(document, 3) == "count 3"
    assert len(queries) == 1
    with CaptureQueriesContext(connection) as queries:
        assert text_at(document, 3) == "count 3"
    assert len(queries) == 0


def test_a_text_from_a_future_that_never_was_is_not_believed() -> None:
    """The database was restored from a backup while the process ran."""
    mira = make_person()
    document = counter(mira, make_root(mira).pk)
    count(mira, document, 2)
    TEXTS.keep(document.pk, Opened(9, "count 9"))
    assert change(mira, document.pk, "count 2", "count 3") == 3


def test_large_edits_bring_snapshots_earlier() -> None:
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "a")
    part = "x" * (SNAPSHOT_BYTES // 2)
    for n in range(3):
        change(mira, document.pk, "a", f"a{n}{part}")
        change(mira, document.pk, part, "")
    # Each pair weighs a snapshot's bytes and a little, so that each crosses one boundary.
    assert len(kept_at(document)) == 4


def test_snapshots_that_were_lost_are_made_by_an_opening() -> None:
    """D7: a process died between the answer and the snapshot."""
    mira = make_person()
    document = counter(mira, make_root(mira).pk)
    record(mira, document, 3 * SNAPSHOT_BATCHES + 1)
    assert kept_at(document) == [0]
    TEXTS.forget(document.pk)
    assert text_at(document, document.revision) == f"count {document.revision}"
    assert kept_at(document) == [0, *(n * SNAPSHOT_BATCHES for n in (1, 2, 3))]


def test_tending_is_never_an_error_of_the_edit() -> None:
    mira = make_person()
    document = counter(mira, make_root(mira).pk)
    count(mira, document, SNAPSHOT_BATCHES - 1)
    with mock.patch.object(editing, "keep_snapshots", side_effect=DatabaseError("disk full")):
        count(mira, document, SNAPSHOT_BATCHES)
    assert kept_at(document) == [0]
    count(mira, document, SNAPSHOT_BATCHES + 1)


def test_authors_are_kept_beside_snapshots_and_fold_from_there() -> None:
    mira, tom = make_person(), make_person("tom", superuser=True)
    document = make_document(mira, make_root(mira).pk, "aaaa")
    change(tom, document.pk, "aaaa", "aabb")
    document.refresh_from_db()
    assert authors_at(document, 0) == [(mira.actor, 4)]
    assert authors_at(document, 1) == [(mira.actor, 2), (tom.actor, 2)]
    grow = [[Edit("bb" + "c" * n, "bb" + "c" * (n + 1))] for n in range(SNAPSHOT_BATCHES)]
    done = append_batches(document=document.pk, batches=[NewBatch(who=mira, edits=edits) for edits in grow])
    tend_document(document=document.pk, snapshots=done.snapshots)
    document.refresh_from_db()
    kept = AuthorRuns.objects.filter(document=document).order_by("revision").values_list("revision", flat=True)
    assert list(kept) == [0, SNAPSHOT_BATCHES]
    assert authors_at(document, document.revision) == [(mira.actor, 2), (tom.actor, 2), (mira.actor, SNAPSHOT_BATCHES)]


def test_authors_catch_up_in_bounded_steps() -> None:
    """After a burst they lag; each step folds at most so many batches, also where a snapshot is missing."""
    mira = make_person()
    document = counter(mira, make_root(mira).pk)
    record(mira, document, 3 * SNAPSHOT_BATCHES + 1)
    assert [advance_authors(document) for _ in range(4)] == [True, True, True, False]
    kept = AuthorRuns.objects.filter(document=document).order_by("revision").values_list("revision", flat=True)
    assert list(kept) == [0, *(n * SNAPSHOT_BATCHES for n in (1, 2, 3))]
    assert authors_at(document, document.revision) == [(mira.actor, len(f"count {document.revision}"))]


def test_the_cache_is_bounded_in_bytes() -> None:
    cache = TextCache(limit=10_000)
    for number in range(30):
        cache.keep(number, Opened(1, "x" * 1000))
        assert cache.get(0) is not None  # used all the time
    assert cache.size <= 10_000
    assert cache.get(1) is None
    assert cache.get(29) is not None
    cache.keep(0, Opened(0, "older"))
    assert cache.get(0) == Opened(1, "x" * 1000)
    cache.keep(0, Opened(2, "y" * 20_000))
    assert (cache.get(0), cache.size) == (None, 0)


words = st.text(alphabet="ab \n\r𝄞é", max_size=6)
batch = st.lists(st.tuples(words, words), min_size=1, max_size=3)


@settings(deadline=None, max_examples=25)
@given(
    first=st.text(alphabet="ab \n\r𝄞é", min_size=1, max_size=40),
    groups=st.lists(st.lists(st.tuples(st.integers(0, 2), batch), min_size=1, max_size=5), max_size=6),
)
def test_the_fold_of_what_is_recorded_is_the_text(
    first: str, groups: list[list[tuple[int, list[tuple[str, str]]]]]
) -> None:
    """D4, D7, D15: random batches of three actors in random groups, whatever of them is accepted."""
    mira = make_person()
    root = make_root(mira)
    cast = [mira, make_agent(root)[0], make_person("tom")]
    document = make_document(mira, root.pk, first)
    text, revision, runs = first, 0, [(mira.actor, len(first))]
    for group in groups:
        batches = [
            NewBatch(who=cast[actor], edits=[Edit(old, new) for old, new in pairs], request_id=None)
            for actor, pairs in group
        ]
        for batch, result in zip(batches, append_batches(document=document.pk, batches=batches).results, strict=True):
            if isinstance(result, DomainError):
                continue
            revision += 1
            assert result.revision == revision
            runs = fold_authors(runs, text, batch.edits, batch.who.actor)
            text = apply_edits(text, batch.edits)
    document.refresh_from_db()
    assert document.revision == revision
    assert text_at(document, revision) == text
    recorded = EditBatch.objects.filter(document=document).order_by("revision")
    assert [row.revision for row in recorded] == list(range(1, revision + 1))
    assert document.size == sum(len(row.edits.encode()) for row in recorded)
    folded = first
    for row in recorded:
        folded = apply_edits(folded, decode_edits(row.edits))
    assert folded == text
    assert authors_at(document, revision) == runs
    assert sum(length for _, length in runs) == len(text)


def test_an_edit_without_others_is_recorded_the_same_way() -> None:
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "a")
    done = edit_document(who=mira, document=document.pk, edits=[Edit("a", "b"), Edit("b", "c")])
    assert (done.document, done.revision, done.repeated) == (document.pk, 1, False)

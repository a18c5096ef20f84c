"""Finding what was said, done and written: read in the background, found by who may see it (C5, R8)."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from console.access import Who, who_is_user
from console.actions.people import make_user
from console.board.keeping import fold_touched
from console.clock import moved
from console.errors import DomainError
from console.models import Membership, Role, SearchRow, User
from console.search import finding, keeping
from console.search.finding import Found, search
from console.search.keeping import DOCUMENT_REST, read_documents, read_due, waiting
from console.search.words import PIECE, PIECES, QUESTION_LENGTH
from lineage.actions.entries import NewEntry, append_entries
from lineage.actions.memory import apply_memory_ops
from lineage.models import Root
from tests.factories import change, make_agent, make_document, make_person, make_root, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def mira() -> Who:
    return make_person()


@pytest.fixture
def root(mira: Who) -> Root:
    return make_root(mira, title="Parcel tracking")


def read_all() -> None:
    """What the keepers do."""
    while fold_touched():
        pass
    while read_due():
        pass
    while read_documents():
        pass


def found(who: Who, asked: str, **narrowed: Any) -> list[Found]:
    return search(who=who, asked=asked, **narrowed)[0]


def test_an_entry_is_found_with_its_place(mira: Who, root: Root) -> None:
    wren, _ = make_agent(root)
    assert wren.conversation is not None
    say(wren, wren.conversation, "Why is the status page slow?", "It makes 38 queries in tracking/status.py.")
    read_all()
    (one,) = found(mira, "status.py quer")
    assert (one.kind, one.conversation, one.at, one.root) == ("entry", wren.conversation, 2, root.pk)
    assert one.href == f"/conversations/{wren.conversation}/?at=2#e2"
    assert [one.excerpt[start:end] for start, end in one.marks] == ["queries", "status", "py"]
    assert found(mira, '"page status"') == []
    assert len(found(mira, '"status page"')) == 1
    assert [row.at for row in found(mira, "status -queries")] == [1]


def test_all_kinds_are_found_and_can_be_chosen(mira: Who, root: Root) -> None:
    document = make_document(mira, root.pk, "Parcel labels are printed on Thursday.\n", title="Release plan")
    op = {
        "op": "add",
        "slug": "labels",
        "kind": "fact",
        "line": "The parcel printer takes one file",
        "body": "No more.",
    }
    apply_memory_ops(who=mira, root=root.pk, ops=[op])
    say(mira, root.pk, "How many parcels a day?")
    read_all()
    assert sorted(one.kind for one in found(mira, "parcel")) == ["document", "entry", "memory", "title"]
    (one,) = found(mira, "parcel", kinds=["document"])
    assert (one.document, one.title, one.href) == (document.pk, "Release plan", f"/documents/{document.pk}/")
    (one,) = found(mira, "parcel", kinds=["memory"])
    assert (one.slug, one.href) == ("labels", f"/roots/{root.pk}/memory/?slug=labels#one")
    (one,) = found(mira, "parcel", kinds=["title"])
    assert one.href == f"/roots/{root.pk}/"
    assert [one.document for one in found(mira, "release plan")] == [document.pk]


def test_what_changed_is_found_as_it_is_now(mira: Who, root: Root) -> None:
    document = make_document(mira, root.pk, "Ship on Thursday.\n")
    op = {"op": "add", "slug": "day", "kind": "fact", "line": "We ship on Thursday", "body": "Always."}
    apply_memory_ops(who=mira, root=root.pk, ops=[op])
    read_all()
    assert len(found(mira, "thursday")) == 2
    change(mira, document.pk, "Thursday", "Friday")
    apply_memory_ops(who=mira, root=root.pk, ops=[{"op": "update", "slug": "day", "line": "We ship on Friday"}])
    with moved(DOCUMENT_REST + timedelta(seconds=1)):
        read_all()
    assert found(mira, "thursday") == []
    assert len(found(mira, "friday")) == 2
    apply_memory_ops(who=mira, root=root.pk, ops=[{"op": "delete", "slug": "day"}])
    read_all()
    assert [one.kind for one in found(mira, "friday")] == ["document"]


def test_a_document_that_is_typed_in_is_not_read_at_every_key(mira: Who, root: Root) -> None:
    document = make_document(mira, root.pk, "one\n")
    read_all()
    change(mira, document.pk, "one", "two")
    read_all()
    assert found(mira, "two") == []
    with moved(DOCUMENT_REST + timedelta(seconds=1)):
        read_all()
    assert len(found(mira, "two")) == 1


def test_only_what_the_reader_may_see_is_found(mira: Who, root: Root) -> None:
    """R8: a stranger finds nothing, a token only its own root, the administrator everything."""
    other = make_root(make_person("noor"), title="Parcel billing")
    read_all()
    assert [one.root for one in found(mira, "parcel")] == [root.pk]
    assert found(make_person("zoe"), "parcel") == []
    wren, _ = make_agent(other)
    assert [one.root for one in found(wren, "parcel")] == [other.pk]
    boss = who_is_user(make_user(username="boss", superuser=True))
    assert {one.root for one in found(boss, "parcel")} == {root.pk, other.pk}
    with pytest.raises(DomainError) as refusal:
        found(mira, "parcel", root=other.pk)
    assert refusal.value.code == "not_found"
    zoe = make_person("zoe")
    Membership.objects.create(root=root, actor_id=zoe.actor, role=Role.VIEWER, created=root.conversation.created)
    assert [one.root for one in found(zoe, "parcel")] == [root.pk]


def test_pages_go_on_without_gap_or_repeat(mira: Who, root: Root) -> None:
    say(mira, root.pk, *[f"parcel number {n}" for n in range(30)], end=False)
    read_all()
    seen: list[int | None] = []
    cursor = None
    while True:
        page, cursor = search(who=mira, asked="parcel number", cursor=cursor, limit=7)
        seen += [one.at for one in page]
        if cursor is None:
            break
    assert seen == list(range(30, 0, -1))


def test_a_long_text_is_one_place_and_says_when_it_was_cut(mira: Who, root: Root) -> None:
    long = "parcel " * (PIECE * PIECES["entry"] // 7 + 100) + "the-very-end"
    append_entries(
        who=mira, conversation=root.pk, entries=[NewEntry(kind="user", model=[{"role": "user", "content": long}])]
    )
    read_all()
    entries = found(mira, "parcel", kinds=["entry"])
    assert len(entries) == 1
    assert SearchRow.objects.filter(kind="entry").count() == PIECES["entry"]
    assert SearchRow.objects.filter(kind="entry", cut=True).count() == 1
    assert found(mira, "very-end") == []


def test_reading_is_bounded_and_goes_on(mira: Who, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "ENTRIES", 10)
    other = make_root(mira)
    say(mira, root.pk, *[f"parcel {n}" for n in range(25)], end=False)
    say(mira, other.pk, *[f"parcel {n}" for n in range(3)], end=False)
    fold_touched()
    assert waiting() == 2
    assert read_due()
    assert SearchRow.objects.filter(kind="entry").count() == 10
    while read_due():
        pass
    assert SearchRow.objects.filter(kind="entry").count() == 28
    assert waiting() == 0


def test_text_that_a_database_refuses_is_found_all_the_same(mira: Who, root: Root) -> None:
    say(mira, root.pk, "a\0parcel \ud800 here")
    read_all()
    assert len(found(mira, "parcel here", kinds=["entry"])) == 1


@pytest.mark.parametrize(
    ("asked", "narrowed", "code", "words"),
    [
        ("", {}, "invalid", "at least one word"),
        ("-parcel", {}, "invalid", "at least one word"),
        ("x" * (QUESTION_LENGTH + 1), {}, "invalid", f"at most {QUESTION_LENGTH}"),
        ("parcel", {"limit": 0}, "invalid", "limit is 1 to 100"),
        ("parcel", {"limit": 101}, "invalid", "limit is 1 to 100"),
        ("parcel", {"kinds": ["people"]}, "invalid", "kind is one of"),
        ("parcel", {"cursor": "yesterday,1"}, "invalid", "not a cursor"),
        ("parcel", {"cursor": "2026-12-01T00:00:00,1"}, "invalid", "not a cursor"),
    ],
)
def test_refusals(mira: Who, asked: str, narrowed: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(DomainError, match=words) as refusal:
        search(who=mira, asked=asked, **narrowed)
    assert refusal.value.code == code


@pytest.mark.django_db(transaction=True)
def test_a_search_that_takes_too_long_is_refused(mira: Who, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "PATIENCE_MS", 20)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN; LOCK TABLE console_searchrow")
        with pytest.raises(DomainError) as refusal:
            search(who=mira, asked="parcel")
    finally:
        other.close()
    assert refusal.value.code == "too_common"
    assert found(mira, "parcel") == []


def test_over_http(mira: Who, root: Root) -> None:
    _, secret = make_agent(root)
    say(mira, root.pk, "How many parcels a day?")
    read_all()
    client = Client(headers={"authorization": f"Bearer {secret}"})
    answer = client.get("/api/search?q=parcels+day&kind=entry&kind=document").json()
    (item,) = answer["items"]
    assert (item["kind"], item["at"], item["document"], item["slug"]) == ("entry", 2, None, None)
    assert answer["next"] is None
    assert answer["pending"] == 0
    assert client.get("/api/search").status_code == 422
    assert Client().get("/api/search", {"q": "x"}).status_code == 401


def test_the_page_marks_words_and_escapes_the_rest(mira: Who, root: Root) -> None:
    say(mira, root.pk, "<script>alert(1)</script> parcel")
    read_all()
    client = Client()
    client.force_login(User.objects.get(actor=mira.actor))
    shown = client.get("/search/", {"q": "parcel", "kind": "entry"}).content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt; <mark>parcel</mark>" in shown
    assert "Nothing holds all of that" in client.get("/search/", {"q": "nowhere"}).content.decode()
    refused = client.get("/search/", {"q": "-parcel"}).content.decode()
    assert "Search for at least one word" in refused
    assert client.get("/search/", {"q": "parcel", "root": str(2**40)}).status_code == 404
    assert "Search everything for" in client.get("/palette/", {"q": "parcel"}).json()["items"][-1]["label"]

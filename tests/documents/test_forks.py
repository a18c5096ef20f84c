"""Documents along a tree (D9), and making, naming and listing them."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.access import Who
from console.errors import DomainError, Forbidden, Invalid, NotFound
from console.models import Role, Touched
from documents.actions import (
    Accepted,
    NewBatch,
    append_batches,
    create_document,
    edit_document,
    rename_document,
    tend_document,
)
from documents.author_runs import authors_at
from documents.edits import Edit
from documents.forks import documents_seen, seen_from
from documents.limits import MAX_LENGTH
from documents.models import TITLE_LENGTH, Document, EditBatch
from documents.texts import SNAPSHOT_BATCHES, TEXTS, batches_between, text_at
from lineage.models import Conversation
from tests.factories import change, make_agent, make_document, make_fork, make_person, make_root, say
from tests.races import together
from tests.replay import replaying

pytestmark = pytest.mark.django_db


def session(root_title: str = "Checkout service") -> tuple[Who, Conversation]:
    """A person who may do all, and a session with three entries."""
    mira = make_person(superuser=True)
    wren, _ = make_agent(make_root(mira, root_title))
    assert wren.conversation is not None
    say(wren, wren.conversation, "Hello", "Hi")
    return mira, Conversation.objects.get(pk=wren.conversation)


def more(conversation: Conversation) -> int:
    """One more entry; its number."""
    mira = make_person(superuser=True)
    (seq,) = say(mira, conversation.pk, "more", end=False)
    return seq


def edit_from(who: Who, document: int, conversation: Conversation, old: str, new: str) -> Accepted:
    return edit_document(who=who, document=document, edits=[Edit(old, new)], conversation=conversation.pk)


def count(who: Who, document: int, start: int, end: int) -> None:
    """Edit a document that counts its edits, in one group."""
    edits = [[Edit(f"count {n}", f"count {n + 1}")] for n in range(start, end)]
    done = append_batches(document=document, batches=[NewBatch(who=who, edits=one) for one in edits])
    tend_document(document=document, snapshots=done.snapshots)


def texts_seen(conversation: Conversation) -> dict[str, str]:
    seen = documents_seen(conversation.pk, conversation.root_id)
    return {one.document.title: text_at(one.document, one.revision) for one in seen}


def test_documents_of_a_root_are_one_live_text_for_its_tree() -> None:
    mira, place = session()
    root = Conversation.objects.get(pk=place.root_id)
    say(mira, root.pk, "Hello")
    plan = make_document(mira, root.pk, "a")
    fork = make_fork(root, 1)
    done = edit_from(mira, plan.pk, fork, "a", "b")
    assert (done.document, done.revision) == (plan.pk, 1)
    for conversation in (root, place, fork):
        assert texts_seen(conversation) == {"Plan": "b"}


def test_a_fork_reads_as_at_its_fork_entry_and_its_first_edit_makes_its_own() -> None:
    mira, place = session()
    plan = make_document(mira, place.pk, "a")
    change(mira, plan.pk, "a", "b")
    at = more(place)
    fork = make_fork(place, at)
    more(place)  # what a source keeps of its fork
    change(mira, plan.pk, "b", "c")
    assert texts_seen(fork) == {"Plan": "b"}
    seen = seen_from(Document.objects.get(pk=plan.pk), fork.pk)
    assert (seen.document.pk, seen.revision, seen.live) == (plan.pk, 1, False)

    with pytest.raises(DomainError) as refused:
        edit_from(mira, plan.pk, fork, "c", "d")
    assert (refused.value.code, refused.value.facts["revision"]) == ("absent", 1)
    assert Document.objects.count() == 1  # a refused edit makes nothing

    done = edit_from(mira, plan.pk, fork, "b", "fork")
    assert (done.document != plan.pk, done.revision) == (True, 2)
    assert edit_from(mira, plan.pk, fork, "fork", "fork!").revision == 3
    assert change(mira, done.document, "fork!", "fork!!") == 4
    assert texts_seen(fork) == {"Plan": "fork!!"}
    assert texts_seen(place) == {"Plan": "c"}
    assert Document.objects.count() == 2


def test_what_was_made_after_the_fork_is_not_inherited() -> None:
    mira, place = session()
    fork = make_fork(place, 3)
    more(place)
    late = make_document(mira, place.pk, "a", title="Late")
    assert texts_seen(fork) == {}
    live = seen_from(late, fork.pk)
    assert (live.document.pk, live.live) == (late.pk, True)  # it is there for whoever may read the root, as it is


def test_a_fork_at_an_older_entry_reads_older_text() -> None:
    mira, place = session()
    plan = make_document(mira, place.pk, "0")
    for n in range(4):
        change(mira, plan.pk, str(n), str(n + 1))
        more(place)
    assert [texts_seen(make_fork(place, at))["Plan"] for at in (3, 4, 5, 7)] == ["1", "2", "3", "4"]


def test_forks_of_forks_follow_the_nearest() -> None:
    """The copy where it is visible, else what it was copied from."""
    mira, place = session()
    plan = make_document(mira, place.pk, "a")
    fork = make_fork(place, 3)
    more(place)
    before = more(fork)
    copy = edit_from(mira, plan.pk, fork, "a", "b").document
    after = more(fork)
    change(mira, copy, "b", "c")
    early, late = make_fork(fork, before - 1), make_fork(fork, after)
    more(fork)
    change(mira, copy, "c", "d")
    assert (texts_seen(early), texts_seen(late), texts_seen(fork)) == ({"Plan": "a"}, {"Plan": "c"}, {"Plan": "d"})
    own = edit_from(mira, copy, late, "c", "late")
    row = Document.objects.get(pk=own.document)
    assert (row.conversation_id, row.source_id, row.origin_id, own.revision) == (late.pk, copy, plan.pk, 3)
    TEXTS.forget(row.pk)
    assert [text_at(row, revision) for revision in range(4)] == ["a", "b", "c", "late"]
    assert [batch.revision for batch in batches_between(row, 0, 3)] == [1, 2, 3]
    assert sum(length for _, length in authors_at(row, 3)) == len("late")
    # From the sibling that does not see it, the copy is what it is.
    assert seen_from(row, early.pk).document.pk == row.pk


def test_a_copy_opens_from_its_source_in_few_steps() -> None:
    mira, place = session()
    plan = make_document(mira, place.pk, "count 0")
    count(mira, plan.pk, 0, SNAPSHOT_BATCHES + 5)
    fork = make_fork(place, 3)
    number = SNAPSHOT_BATCHES + 5
    copy = edit_from(mira, plan.pk, fork, f"count {number}", f"count {number + 1}").document
    count(mira, copy, number + 1, 2 * SNAPSHOT_BATCHES + 1)
    row = Document.objects.get(pk=copy)
    assert list(row.snapshots.values_list("revision", flat=True)) == [2 * SNAPSHOT_BATCHES]
    for revision in (3, SNAPSHOT_BATCHES, number, number + 1, row.revision):
        TEXTS.forget(copy)
        with CaptureQueriesContext(connection) as queries:
            assert text_at(row, revision) == f"count {revision}"
        assert len(queries) <= 3


def test_a_token_looks_from_its_own_conversation() -> None:
    mira, place = session()
    plan = make_document(mira, place.pk, "a")
    fork = make_fork(place, 3)
    more(place)
    change(mira, plan.pk, "a", "b")
    wren, _ = make_agent(fork.root)
    inside = replace(wren, conversation=fork.pk)
    done = edit_document(who=inside, document=plan.pk, edits=[Edit("a", "fork")])
    assert (done.document != plan.pk, done.revision) == (True, 1)
    assert EditBatch.objects.get(document=done.document).head == Conversation.objects.get(pk=fork.pk).head == 4


def test_a_conversation_of_another_tree_is_no_place_to_look_from() -> None:
    mira, place = session()
    _, elsewhere = session("Other")
    plan = make_document(mira, place.pk, "a")
    for conversation in (elsewhere.pk, 10**30, 0):
        with pytest.raises(NotFound):
            seen_from(plan, conversation)


@pytest.mark.django_db(transaction=True)
def test_two_first_edits_of_a_fork_meet_in_one_document() -> None:
    mira, place = session()
    plan = make_document(mira, place.pk, "a b")
    fork = make_fork(place, 3)
    first, second = together(
        lambda: edit_from(mira, plan.pk, fork, "a", "A"), lambda: edit_from(mira, plan.pk, fork, "b", "B")
    )
    assert isinstance(first, Accepted), first
    assert isinstance(second, Accepted), second
    assert first.document == second.document != plan.pk
    assert sorted([first.revision, second.revision]) == [1, 2]
    assert texts_seen(fork) == {"Plan": "A B"}


def test_making_a_document() -> None:
    mira, place = session()
    made = create_document(who=mira, conversation=place.pk, title="  Roll  out ", text="", request_id="once")
    again = create_document(who=mira, conversation=place.pk, title="Other", text="x", request_id="once")
    assert (made.pk, made.title, made.revision, text_at(made, 0)) == (again.pk, "Roll out", 0, "\n")
    assert Document.objects.count() == 1
    assert Touched.objects.filter(conversation=place.pk).exists()


def test_who_may_make_and_what_is_refused() -> None:
    mira, place = session()
    root = Conversation.objects.get(pk=place.root_id).as_root
    viewer, _ = make_agent(root, "bo", role=Role.VIEWER)
    for who, error in ((viewer, Forbidden), (make_person("sam"), NotFound)):
        with pytest.raises(error):
            create_document(who=who, conversation=place.pk, title="Plan")
        with pytest.raises(error):
            rename_document(who=who, document=make_document(mira, place.pk).pk, title="Plan")
    for title in ("", " \n ", "x" * (TITLE_LENGTH + 1)):
        with pytest.raises(Invalid):
            create_document(who=mira, conversation=place.pk, title=title)
    with pytest.raises(DomainError, match="at most") as caught:
        create_document(who=mira, conversation=place.pk, title="Plan", text="x" * (MAX_LENGTH + 1))
    assert caught.value.code == "document_too_long"
    made = create_document(who=mira, conversation=place.pk, title="x" * TITLE_LENGTH, text="x" * MAX_LENGTH)
    assert len(text_at(made, 0)) == MAX_LENGTH
    for number in (0, 2**63, 10**30):
        with pytest.raises(NotFound):
            create_document(who=mira, conversation=number, title="Plan")


def test_a_new_title_is_a_small_state_with_a_growing_version() -> None:
    mira, place = session()
    plan = make_document(mira, place.pk)
    with replaying(f"document:{plan.pk}"):
        rename_document(who=mira, document=plan.pk, title="Roll-out", request_id="r")
        rename_document(who=mira, document=plan.pk, title="Ignored", request_id="r")
    with replaying(f"document:{plan.pk}"):
        assert rename_document(who=mira, document=plan.pk, title="Roll-out 2").title_version == 2


def test_lists_cost_the_same_whatever_they_hold() -> None:
    mira, place = session()
    fork = make_fork(make_fork(place, 3), 3)

    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            documents_seen(fork.pk, fork.root_id)
        return len(found)

    make_document(mira, place.pk, title="1")
    few = queries()
    place.refresh_from_db()
    for n in range(2, 6):
        document = make_document(mira, place.pk, title=str(n))
        make_document(mira, place.root_id, title=f"root {n}")
        change(mira, document.pk, "one", "1")
    assert queries() == few == 3
    assert len(documents_seen(fork.pk, fork.root_id)) == 9

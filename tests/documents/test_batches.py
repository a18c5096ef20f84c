"""Recording batches (D5, D7, D8, D10, D11)."""

import json
from typing import Any
from unittest import mock

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from console.access import Who
from console.errors import DomainError, Forbidden, Invalid, NotFound
from console.models import REQUEST_ID_LENGTH, Role
from documents.actions import Accepted, NewBatch, OutcomeUnknown, append_batches, create_document, edit_document
from documents.actions import batches as recording
from documents.edits import Edit
from documents.models import AuthorRuns, Document, EditBatch, Snapshot
from documents.texts import TEXTS, text_at
from lineage.models import Conversation, Entry
from tests.factories import change, make_agent, make_document, make_person, make_root, say
from tests.races import in_thread, together, wait_until_blocked
from tests.replay import published, replaying

pytestmark = pytest.mark.django_db


def edits(old: str, new: str) -> list[Edit]:
    return [Edit(old_string=old, new_string=new)]


def newest_text(document: Document) -> str:
    row = Document.objects.get(pk=document.pk)
    return text_at(row, row.revision)


def accepted(result: object) -> Accepted:
    assert isinstance(result, Accepted), result
    return result


def refused(result: object) -> DomainError:
    assert isinstance(result, DomainError), result
    return result


def test_a_batch_is_a_revision() -> None:
    mira = make_person()
    root = make_root(mira)
    document = make_document(mira, root.pk, "one\ntwo\n")
    with replaying(f"document:{document.pk}", f"conversation:{root.pk}") as events:
        assert change(mira, document.pk, "two", "2") == 1
    (event,) = events.facts(f"document:{document.pk}")
    assert event == {
        "seq": 1,
        "kind": "edits",
        "author": {"id": mira.actor, "name": mira.name, "kind": "person"},
        "request_id": event["request_id"],
        "edits": [{"old_string": "two", "new_string": "2"}],
    }
    assert newest_text(document) == "one\n2\n"
    assert (change(mira, document.pk, "one", "1"), newest_text(document)) == (2, "1\n2\n")
    assert text_at(document, 0) == "one\ntwo\n"


def test_each_batch_of_a_group_is_accepted_or_refused_by_itself() -> None:
    """D11: applied in arrival order, published once."""
    mira, agent = make_person(), make_agent(root := make_root())[0]
    document = make_document(agent, root.pk, "a b")
    with replaying(f"document:{document.pk}") as events:
        results = append_batches(
            document=document.pk,
            batches=[
                NewBatch(who=mira, edits=edits("a", "c")),
                NewBatch(who=mira, edits=edits("a", "d")),
                NewBatch(who=agent, edits=edits("c", "e")),
            ],
        ).results
    assert [accepted(results[0]).revision, refused(results[1]).code, accepted(results[2]).revision] == [1, "absent", 2]
    assert refused(results[1]).facts["revision"] == 1
    assert len(events.of(f"document:{document.pk}")) == 1
    assert newest_text(document) == "e b"


def test_a_group_of_refusals_records_nothing() -> None:
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "a")
    with published() as events:
        results = append_batches(document=document.pk, batches=[NewBatch(who=mira, edits=edits("x", "y"))]).results
    assert (refused(results[0]).code, events.events, EditBatch.objects.count()) == ("absent", [], 0)


def test_refusals_help_their_reader() -> None:
    """D5: line numbers of the matches, the nearest line, the present revision; nothing is recorded."""
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "ship on Monday\nship on Friday\n")
    change(mira, document.pk, "Monday", "Tuesday")
    with pytest.raises(DomainError) as ambiguous:
        edit_document(who=mira, document=document.pk, edits=edits("ship", "sail"))
    assert ambiguous.value.as_json() == {
        "code": "ambiguous",
        "message": ambiguous.value.message,
        "ordinal": 1,
        "matches": 2,
        "preview": "ship",
        "lines": [1, 2],
        "revision": 1,
    }
    with pytest.raises(DomainError) as absent:
        edit_document(who=mira, document=document.pk, edits=edits("ship on Tuesdays", "x"))
    assert absent.value.facts["nearest"]["line"] == 1
    assert (absent.value.status, absent.value.facts["revision"]) == (422, 1)
    assert change(mira, document.pk, "ship on Tuesday", "x") == 2


def test_lines_are_those_of_the_running_text() -> None:
    """The text just before the refused edit, earlier edits of the batch and of the group included."""
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "a\nb\nb\n")
    (_, result) = append_batches(
        document=document.pk,
        batches=[
            NewBatch(who=mira, edits=edits("a", "1\n2\n3")),
            NewBatch(who=mira, edits=[*edits("1", "0\n1"), *edits("b", "c")]),
        ],
    ).results
    assert (refused(result).facts["lines"], refused(result).facts["ordinal"]) == ([5, 6], 2)


@pytest.mark.parametrize("bad", ["\0", "\ud800"])
def test_text_that_no_document_can_hold(bad: str) -> None:
    mira = make_person()
    root = make_root(mira)
    document = make_document(mira, root.pk, "a")
    with pytest.raises(DomainError) as caught:
        edit_document(who=mira, document=document.pk, edits=edits("a", bad))
    assert (caught.value.code, caught.value.facts["field"]) == ("invalid_text", "new_string")
    with pytest.raises(DomainError) as caught:
        create_document(who=mira, conversation=root.pk, title="Plan", text=f"a{bad}")
    assert (caught.value.code, caught.value.facts["field"]) == ("invalid_text", "text")
    assert change(mira, document.pk, "a", "b") == 1


def test_line_ends_are_kept_as_they_are() -> None:
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "a\r\nb\rc\n\u2028\ufeffd")
    change(mira, document.pk, "b\r", "b\r\n\r")
    TEXTS.forget(document.pk)
    assert newest_text(document) == "a\r\nb\r\n\rc\n\u2028\ufeffd"


def test_a_repeat_returns_the_first_result() -> None:
    """R4: also with another body, also in one group; only acceptances are remembered; actors have their own."""
    mira, tom = make_person(), make_person("tom")
    document = make_document(mira, make_root(mira).pk, "a")
    with pytest.raises(DomainError):
        edit_document(who=mira, document=document.pk, edits=edits("x", "y"), request_id="once")
    first = edit_document(who=mira, document=document.pk, edits=edits("a", "b"), request_id="once")
    again = edit_document(who=mira, document=document.pk, edits=edits("b", "c"), request_id="once")
    assert (first.revision, again.revision, first.repeated, again.repeated) == (1, 1, False, True)
    results = append_batches(
        document=document.pk,
        batches=[
            NewBatch(who=tom, edits=edits("b", "c"), request_id="once"),
            NewBatch(who=mira, edits=edits("c", "d"), request_id="twice"),
            NewBatch(who=mira, edits=edits("d", "e"), request_id="twice"),
            NewBatch(who=mira, edits=edits("d", "e"), request_id="once"),
        ],
    ).results
    assert [accepted(result).revision for result in results] == [2, 3, 3, 1]
    assert newest_text(document) == "d"


def test_request_ids_have_a_length() -> None:
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "a")
    with pytest.raises(Invalid):
        edit_document(who=mira, document=document.pk, edits=edits("a", "b"), request_id="x" * (REQUEST_ID_LENGTH + 1))
    done = edit_document(who=mira, document=document.pk, edits=edits("a", "b"), request_id="x" * REQUEST_ID_LENGTH)
    assert done.revision == 1


def test_who_may_edit() -> None:
    """S2, R7: absent and not yours look the same; a viewer may read."""
    mira = make_person()
    root = make_root(mira)
    document = make_document(mira, root.pk, "a")
    viewer, _ = make_agent(root, "bo", role=Role.VIEWER)
    stranger, other = make_person("sam"), make_agent(make_root())[0]
    for who in (stranger, other):
        with pytest.raises(NotFound) as caught:
            edit_document(who=who, document=document.pk, edits=edits("a", "b"))
        with pytest.raises(NotFound) as missing:
            edit_document(who=who, document=document.pk + 1000, edits=edits("a", "b"))
        assert caught.value.message == missing.value.message.replace(str(document.pk + 1000), str(document.pk))
    with pytest.raises(Forbidden):
        edit_document(who=viewer, document=document.pk, edits=edits("a", "b"))
    assert change(mira, document.pk, "a", "b") == 1


def test_a_huge_number_is_nobodys_document() -> None:
    for number in (0, -1, 2**63, 10**30):
        with pytest.raises(NotFound):
            edit_document(who=make_person(), document=number, edits=edits("a", "b"))


def test_an_agents_batches_leave_one_entry_in_its_own_conversation() -> None:
    """D8: one per transaction, with the revision range; people's and scripts' typing leaves none."""
    mira = make_person()
    root = make_root(mira)
    (wren, _), (script, _) = make_agent(root, "wren"), make_agent(root, "script", role=Role.OPERATOR)
    document = make_document(mira, root.pk, "a b c d", title="Plan")
    with replaying(f"conversation:{wren.conversation}", f"conversation:{root.pk}", f"document:{document.pk}"):
        append_batches(
            document=document.pk,
            batches=[
                NewBatch(who=wren, edits=edits("a", "A")),
                NewBatch(who=script, edits=edits("b", "B")),
                NewBatch(who=wren, edits=edits("c", "C")),
                NewBatch(who=mira, edits=edits("d", "D")),
            ],
        )
    (entry,) = Entry.objects.filter(kind="document.edited")
    assert (entry.conversation_id, entry.author_id, entry.model) == (wren.conversation, wren.actor, "")
    assert json.loads(entry.data) == {"document": document.pk, "title": "Plan", "first": 1, "last": 3, "batches": 2}
    change(wren, document.pk, "A", "AA")
    assert Entry.objects.filter(kind="document.edited", conversation=wren.conversation).count() == 2


def test_a_batch_keeps_where_its_conversation_stood() -> None:
    """D7: the head entry; the agent's own entry of the same transaction counts."""
    root = make_root()
    wren, _ = make_agent(root)
    assert wren.conversation is not None
    say(wren, wren.conversation, "Hello", "Hi")
    document = make_document(wren, wren.conversation, "a")
    assert document.head == 3
    mira = make_person(superuser=True)
    change(mira, document.pk, "a", "b")
    change(wren, document.pk, "b", "c")
    assert list(EditBatch.objects.order_by("revision").values_list("head", flat=True)) == [3, 4]
    assert Conversation.objects.get(pk=wren.conversation).head == 4


def test_batches_and_snapshots_are_immutable() -> None:
    """R6."""
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "a")
    change(mira, document.pk, "a", "b")
    for model in (EditBatch, Snapshot, AuthorRuns):
        for refused_change in (model.objects.all().delete, lambda model=model: model.objects.update(revision=9)):
            with pytest.raises(IntegrityError, match="recorded fact"), transaction.atomic():
                refused_change()
    assert newest_text(document) == "b"


@pytest.mark.parametrize(("kind", "most"), [("person", 9), ("agent", 17)])
def test_query_counts(kind: str, most: int) -> None:
    """A group costs the same whatever its size (D11); `most` counts savepoints of the test too."""
    mira = make_person()
    root = make_root(mira)
    who = mira if kind == "person" else make_agent(root)[0]
    document = make_document(mira, root.pk, "".join(f"<{number}>" for number in range(20)))
    change(who, document.pk, "<0>", "<zero>")

    def group(numbers: range) -> int:
        batches = [NewBatch(who=who, edits=edits(f"<{n}>", f"({n})"), request_id=f"r{n}") for n in numbers]
        with CaptureQueriesContext(connection) as queries:
            append_batches(document=document.pk, batches=batches)
        return len(queries)

    one, many = group(range(1, 2)), group(range(2, 20))
    assert one == many
    assert one <= most


def test_a_connection_that_dies_at_commit_is_asked_again() -> None:
    """R5: the outcome is unknown, so the same group runs again and the request ids decide."""
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "a")
    real, calls = recording._append, []

    def dies_after_commit(*args: Any, **options: Any) -> Any:
        calls.append(args[2])
        done = real(*args, **options)
        if len(calls) == 1:
            raise OperationalError("server closed the connection unexpectedly")
        return done

    with mock.patch.object(recording, "_append", dies_after_commit), mock.patch.object(connection, "close"):
        result = append_batches(document=document.pk, batches=[NewBatch(who=mira, edits=edits("a", "b"))]).results[0]
    assert (accepted(result).revision, calls, EditBatch.objects.count()) == (1, [False, True], 1)


def test_an_outcome_that_stays_unknown_is_no_refusal() -> None:
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "a")
    gone = mock.Mock(side_effect=OperationalError("no connection"))
    with (
        mock.patch.object(recording, "_append", gone),
        mock.patch.object(recording, "RETRY_S", 0.0),
        mock.patch.object(connection, "close"),
        pytest.raises(OutcomeUnknown) as caught,
    ):
        append_batches(document=document.pk, batches=[NewBatch(who=mira, edits=edits("a", "b"))])
    assert (caught.value.code, caught.value.status) == ("outcome_unknown", 503)
    assert change(mira, document.pk, "a", "b") == 1


@pytest.mark.django_db(transaction=True)
def test_two_writers_at_once() -> None:
    """R3: no revision is lost, none is given twice, whoever comes first."""
    mira, tom = make_person(superuser=True), make_person("tom", superuser=True)
    document = make_document(mira, make_root(mira).pk, "".join(f"<{n}>" for n in range(40)))

    def write(who: Who, numbers: range) -> list[int]:
        return [change(who, document.pk, f"<{n}>", f"({n})") for n in numbers]

    results = together(lambda: write(mira, range(20)), lambda: write(tom, range(20, 40)))
    revisions = [revision for result in results if isinstance(result, list) for revision in result]
    assert sorted(revisions) == list(range(1, 41)), results
    TEXTS.forget(document.pk)
    assert newest_text(document) == "".join(f"({n})" for n in range(40))


@pytest.mark.django_db(transaction=True)
def test_two_copies_of_one_request_at_once() -> None:
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "a")

    def write() -> Accepted:
        return edit_document(who=mira, document=document.pk, edits=edits("a", "aa"), request_id="same")

    first, second = together(write, write)
    assert sorted([accepted(first).repeated, accepted(second).repeated]) == [False, True]
    assert {accepted(first).revision, accepted(second).revision} == {1}


@pytest.mark.django_db(transaction=True)
def test_agents_and_people_in_every_order_never_wait_for_each_other_in_a_ring() -> None:
    """R5: conversations by id, then the document; documents of two conversations, edited by each other's agents."""
    mira = make_person()
    root = make_root(mira)
    (wren, _), (robin, _) = make_agent(root, "wren"), make_agent(root, "robin")
    assert wren.conversation is not None
    assert robin.conversation is not None
    texts = "".join(f"<{n}>" for n in range(60))
    hers, his = make_document(wren, wren.conversation, texts), make_document(robin, robin.conversation, texts)
    shared = make_document(mira, root.pk, texts)

    def write(who: Who, numbers: range, *documents: Document) -> int:
        for n in numbers:
            for document in documents:
                change(who, document.pk, f"<{n}>", f"({n})")
        return len(numbers)

    results = together(
        lambda: write(wren, range(10), his, hers, shared),
        lambda: write(robin, range(10, 20), hers, shared, his),
        lambda: write(mira, range(20, 30), shared, his, hers),
        lambda: len([say(wren, wren.conversation or 0, "more", end=False) for _ in range(10)]),
        lambda: len([say(robin, robin.conversation or 0, "more", end=False) for _ in range(10)]),
    )
    assert results == [10] * 5
    for document in (hers, his, shared):
        document.refresh_from_db()
        assert document.revision == 30
        heads = list(EditBatch.objects.filter(document=document).order_by("revision").values_list("head", flat=True))
        assert heads == sorted(heads)


@pytest.mark.django_db(transaction=True)
def test_a_conversation_stands_still_while_its_document_is_written() -> None:
    """D7: the head entry is read under its lock, so no entry comes between it and the batch."""
    root = make_root()
    wren, _ = make_agent(root)
    mira = make_person(superuser=True)
    assert wren.conversation is not None
    document = make_document(wren, wren.conversation, "a b")
    with transaction.atomic():
        Document.objects.select_for_update(no_key=True).get(pk=document.pk)
        edit = in_thread(lambda: change(mira, document.pk, "a", "A"))
        wait_until_blocked(1)  # the edit has the head and waits for the document
        entry = in_thread(lambda: say(wren, wren.conversation or 0, "Hello"))
        wait_until_blocked(2)  # the entry waits for the edit
    edit.join()
    entry.join()
    assert EditBatch.objects.get().head == 0
    assert Conversation.objects.get(pk=wren.conversation).head == 2


@pytest.mark.django_db(transaction=True)
def test_people_in_a_shared_document_do_not_wait_for_the_root() -> None:
    """A long append to the root's conversation holds nobody up who types in its documents."""
    mira = make_person()
    root = make_root(mira)
    document = make_document(mira, root.pk, "a")
    with transaction.atomic():
        Conversation.objects.select_for_update(no_key=True).get(pk=root.pk)
        (result,) = together(lambda: change(mira, document.pk, "a", "b"))
    assert result == 1

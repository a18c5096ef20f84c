"""A request reads the tail that it needs, and no more (A1)."""

import json
import time

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from lineage.actions.entries import NewEdit, NewEntry, lock_conversation, place_entries
from lineage.actions.forks import fork_conversation
from lineage.agent import history
from lineage.agent.history import tails_of
from lineage.agent.messages import joined
from lineage.agent.request import REQUEST_CAP, Inputs, assemble
from lineage.loading import load_context
from lineage.models import Conversation
from tests.factories import make_root, make_session

pytestmark = pytest.mark.django_db

INPUTS = Inputs(conversation=1, model="m", system="Work.")


def _conversation() -> Conversation:
    return make_session(make_root())


def _place(conversation: Conversation, *entries: NewEntry) -> None:
    with transaction.atomic():
        place_entries(conversation=lock_conversation(conversation.pk), entries=entries)
    conversation.refresh_from_db()


def _user(text: str) -> NewEntry:
    return NewEntry(kind="user", model=[{"role": "user", "content": text}])


def _answer(text: str) -> NewEntry:
    return NewEntry(kind="assistant", model=[{"role": "assistant", "content": text}])


def _plain(conversation: Conversation) -> list[dict[str, object]]:
    """The whole context as `lineage.context` gives it, as blocks."""
    return [
        {
            "role": m["role"],
            "content": [{"type": "text", "text": m["content"]}] if isinstance(m["content"], str) else m["content"],
        }
        for m in load_context(conversation).messages
    ]


PAGE = 20


@pytest.fixture
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page has 20 lines."""
    monkeypatch.setattr(history, "LINES", PAGE)


@pytest.mark.usefixtures("short_pages")
def test_the_last_tail_is_the_context() -> None:
    row = _conversation()
    _place(row, _user("before"), NewEntry(kind="reset", model=[{"role": "user", "content": "brief"}], head=True))
    for number in range(PAGE):
        _place(row, _user(f"q{number}"), _answer(f"a{number}"))
    tails = list(tails_of(row))
    assert [tail.is_whole for tail in tails] == [False, True]
    for tail in tails:
        assert tail.head[0].content == [{"type": "text", "text": "brief"}]
        assert tail.start == 3
    whole = joined([*tails[-1].head, *tails[-1].messages])
    assert [{"role": m.role, "content": m.content} for m in whole] == _plain(row)
    assert tails[0].messages[0].seq == tails[0].first == row.head - PAGE + 1


@pytest.mark.usefixtures("short_pages")
def test_an_edited_head_reads_as_edited_also_when_it_is_far_back() -> None:
    row = _conversation()
    _place(row, NewEntry(kind="reset", model=[{"role": "user", "content": "old brief"}], head=True))
    edit = NewEdit(target=1, messages=[{"role": "user", "content": "new brief"}])
    _place(row, NewEntry(kind="x.edit", edits=[edit]))
    _place(row, *(_user(f"q{number}") for number in range(PAGE + 5)))
    for tail in tails_of(row):
        assert tail.head[0].content == [{"type": "text", "text": "new brief"}]


def test_a_fork_reads_through_to_its_parents() -> None:
    row = _conversation()
    _place(row, *(_user(f"q{number}") for number in range(10)))
    with transaction.atomic():
        fork = fork_conversation(source=lock_conversation(row.pk), at=7)
    _place(fork, _user("own"))
    (tail,) = tails_of(fork)
    assert [message.seq for message in tail.messages] == [1]  # adjacent words are one message
    assert tail.messages[0].content[-1]["text"] == "own"
    assert len(tail.messages[0].content) == 8


def test_pages_are_cut_by_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SIZE", 1_000)
    row = _conversation()
    for number in range(10):
        _place(row, _user("q" * 400), _answer(f"a{number}"))
    firsts = [tail.first for tail in tails_of(row)]
    assert firsts == sorted(firsts, reverse=True)
    assert (firsts[0], firsts[-1]) == (15, 1)
    assert len(firsts) == 4


def test_an_empty_conversation_has_an_empty_tail() -> None:
    (tail,) = tails_of(_conversation())
    assert tail.is_whole
    assert not tail.messages


def test_fifty_thousand_entries_cost_what_the_cap_holds() -> None:
    """At most 20 ms of work: measured by what is read, and loosely by the clock."""
    row = _conversation()
    text = json.dumps([{"role": "user", "content": "x" * 1_000}])
    answer = json.dumps([{"role": "assistant", "content": "y" * 1_000}])
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO lineage_entry (conversation_id, seq, kind, time, model, data, rest, edits, message_id, outcome,"
            " prompt) SELECT %s, n, 'user', now(), CASE n %% 2 WHEN 1 THEN %s ELSE %s END, '{}', false, false, '', '',"
            " '' FROM generate_series(1, 50001) n",
            [row.pk, text, answer],
        )
        cursor.execute("ANALYZE lineage_entry")
    Conversation.objects.filter(pk=row.pk).update(head=50_001)
    row.refresh_from_db()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assembled = assemble(INPUTS, tails_of(row))
    assert len(queries) <= 3
    assert REQUEST_CAP - 3_000 < len(assembled.body) <= REQUEST_CAP
    assert assembled.ledger.left_out is not None
    assert assembled.ledger.left_out[0] == 1
    assert assembled.ledger.entries_left_out > 49_000
    took = []
    for _ in range(5):
        began = time.perf_counter()
        assemble(INPUTS, tails_of(row))
        took.append(time.perf_counter() - began)
    print(f"assembling at 50,001 entries: {min(took) * 1000:.1f} ms")
    assert min(took) < 0.2  # ten times the promise: machines differ, a full read takes seconds

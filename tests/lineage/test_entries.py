"""Appending and reading entries (L2, L3, R3, R4, R6)."""

import json
import threading

import pytest
from django.db import connection, transaction
from django.db.utils import IntegrityError

from console.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from console.models import REQUEST_ID_LENGTH, Role, Touched
from lineage.actions.entries import BATCH, NewEdit, NewEntry, append_entries, lock_conversation, place_entries
from lineage.entry_data import shown_data
from lineage.models import Conversation, Entry, EntryEdit, EntryRest, Kind, State, Usage
from lineage.models.entries import DATA_BYTES
from lineage.queries import entries_after, entries_before, entries_json, fork_path
from tests.factories import make_agent, make_person, make_root, say

pytestmark = pytest.mark.django_db


def test_entries_are_numbered_without_gaps() -> None:
    root = make_root()
    agent, _ = make_agent(root)
    assert agent.conversation is not None
    assert say(agent, agent.conversation, "Hello", "Hi") == [1, 2, 3]
    assert say(agent, agent.conversation, "Again", "Yes") == [4, 5, 6]
    row = Conversation.objects.get(pk=agent.conversation)
    assert (row.head, row.state) == (6, State.IDLE)
    assert Touched.objects.filter(conversation=row.pk).exists()


def test_an_outside_conversation_runs_until_a_turn_end() -> None:
    """L8: silence never ends a turn, an entry does."""
    agent, _ = make_agent(make_root())
    assert agent.conversation is not None
    say(agent, agent.conversation, "Hello", end=False)
    assert Conversation.objects.get(pk=agent.conversation).state == State.RUNNING
    append_entries(who=agent, conversation=agent.conversation, entries=[NewEntry(kind="turn_end")])
    assert Conversation.objects.get(pk=agent.conversation).state == State.IDLE


def test_a_repeat_returns_the_first_result_also_with_another_body() -> None:
    """R4."""
    agent, _ = make_agent(make_root())
    other, _ = make_agent(make_root())
    assert agent.conversation is not None
    assert other.conversation is not None
    one = [NewEntry(kind="user", model=[{"role": "user", "content": "one"}])]
    two = [*one, *one]
    assert append_entries(who=agent, conversation=agent.conversation, entries=one, request_id="a") == [1]
    assert append_entries(who=agent, conversation=agent.conversation, entries=two, request_id="a") == [1]
    assert append_entries(who=other, conversation=other.conversation, entries=two, request_id="a") == [1, 2]
    assert Entry.objects.filter(conversation=agent.conversation).count() == 1


def test_a_request_id_has_at_most_200_characters() -> None:
    """R4."""
    agent, _ = make_agent(make_root())
    assert agent.conversation is not None
    entry = [NewEntry(kind="turn_end")]
    fits, long = "r" * REQUEST_ID_LENGTH, "r" * (REQUEST_ID_LENGTH + 1)
    append_entries(who=agent, conversation=agent.conversation, entries=entry, request_id=fits)
    with pytest.raises(Invalid) as refused:
        append_entries(who=agent, conversation=agent.conversation, entries=entry, request_id=long)
    assert refused.value.facts["actual"] == REQUEST_ID_LENGTH + 1


def test_only_acceptances_are_remembered() -> None:
    """R4."""
    agent, _ = make_agent(make_root())
    assert agent.conversation is not None
    with pytest.raises(Invalid):
        append_entries(who=agent, conversation=agent.conversation, entries=[NewEntry(kind="reset")], request_id="a")
    good = [NewEntry(kind="turn_end")]
    assert append_entries(who=agent, conversation=agent.conversation, entries=good, request_id="a") == [1]


@pytest.mark.parametrize("kind", ["reset", "lineage.note", "compaction", "x.", "system", "x." + "k" * 63, "x.\0"])
def test_outside_runners_append_only_their_kinds(kind: str) -> None:
    """CONTRACT: user, assistant, tool_result, turn_end and x.… ."""
    agent, _ = make_agent(make_root())
    assert agent.conversation is not None
    append_entries(who=agent, conversation=agent.conversation, entries=[NewEntry(kind="x." + "k" * 62)])
    with pytest.raises(Invalid):
        append_entries(who=agent, conversation=agent.conversation, entries=[NewEntry(kind=kind)])


@pytest.mark.parametrize("model", [[{"role": "system", "content": "x"}], [{"role": "user"}], [{"content": "x"}]])
def test_a_message_without_role_or_content_is_refused(model: list[dict[str, object]]) -> None:
    agent, _ = make_agent(make_root())
    assert agent.conversation is not None
    with pytest.raises(Invalid, match="Entry 1"):
        append_entries(who=agent, conversation=agent.conversation, entries=[NewEntry(kind="user", model=model)])


@pytest.mark.parametrize("count", [0, BATCH + 1])
def test_a_call_appends_one_to_a_thousand_entries(count: int) -> None:
    agent, _ = make_agent(make_root())
    assert agent.conversation is not None
    with pytest.raises(Invalid) as refused:
        append_entries(who=agent, conversation=agent.conversation, entries=[NewEntry(kind="turn_end")] * count)
    assert refused.value.facts == {"field": "entries", "limit": BATCH, "actual": count}


def test_absent_and_not_yours_look_the_same() -> None:
    """R7."""
    agent, _ = make_agent(make_root())
    stranger = make_person("stranger")
    assert agent.conversation is not None
    entry = [NewEntry(kind="turn_end")]
    refusals = []
    for number in (agent.conversation, 10**9):
        with pytest.raises(NotFound) as refused:
            append_entries(who=stranger, conversation=number, entries=entry)
        refusals.append(refused.value.message.replace(str(number), "N"))
    assert refusals[0] == refusals[1]


def test_a_viewer_reads_and_does_not_write() -> None:
    """S2."""
    root = make_root()
    viewer, _ = make_agent(root, role=Role.VIEWER)
    assert viewer.conversation is not None
    with pytest.raises(Forbidden):
        append_entries(who=viewer, conversation=viewer.conversation, entries=[NewEntry(kind="turn_end")])


def test_nobody_appends_to_a_tally() -> None:
    """L7, L13."""
    who = make_person()
    root = make_root(who)
    root.since = 1
    root.save()
    with pytest.raises(Conflict, match="tally"):
        append_entries(who=who, conversation=root.pk, entries=[NewEntry(kind="turn_end")])


def test_recorded_facts_cannot_change() -> None:
    """R6: not even by SQL."""
    agent, _ = make_agent(make_root())
    assert agent.conversation is not None
    say(agent, agent.conversation, "Hello")
    for statement in ("UPDATE lineage_entry SET kind = 'x'", "DELETE FROM lineage_entry"):
        with pytest.raises(IntegrityError, match="recorded fact"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)


def test_strange_text_is_kept_exactly() -> None:
    """R10: U+0000, lone surrogates, key order and numbers."""
    agent, _ = make_agent(make_root())
    assert agent.conversation is not None
    content = "\0 \ud800 é 👩‍👩‍👧  \r\n"
    model = [{"role": "user", "content": content}]
    entry = NewEntry(kind="user", model=model, data={"z": 1.0, "a": 12345678901234567890, "t": content}, prompt=content)
    append_entries(who=agent, conversation=agent.conversation, entries=[entry])
    row = Entry.objects.get(conversation=agent.conversation)
    assert json.loads(row.model) == model
    assert row.data.startswith('{"z":1.0,"a":12345678901234567890,')
    (shown,) = entries_json([row])
    assert json.loads(bytes(shown))["data"]["t"] == content


def test_long_data_is_cut_and_kept_beside_it() -> None:
    """L2: at most 16 KiB are shown, the rest is kept and said."""
    agent, _ = make_agent(make_root())
    assert agent.conversation is not None
    data = {"output": "é" * 40_000, "exit": 1}
    append_entries(who=agent, conversation=agent.conversation, entries=[NewEntry(kind="x.log", data=data)])
    row = Entry.objects.get(conversation=agent.conversation)
    assert len(row.data.encode()) <= DATA_BYTES
    assert json.loads(row.data)["cut"]["bytes"] == len(
        json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    )
    assert json.loads(row.data)["exit"] == 1
    assert json.loads(EntryRest.objects.get(entry=row).data) == data


def test_data_at_the_limit_is_not_cut() -> None:
    data = {"t": "x" * (DATA_BYTES - len('{"t":""}'))}
    assert shown_data(data)[1] is None
    shown, whole = shown_data({"t": data["t"] + "x"})
    assert whole is not None
    assert len(shown.encode()) <= DATA_BYTES


def test_data_of_very_many_keys_is_still_bounded() -> None:
    shown, whole = shown_data({f"key {n}": [["x" * 50] * 9] * 9 for n in range(1000)})
    assert whole is not None
    assert len(shown.encode()) <= DATA_BYTES
    assert "cut" in json.loads(shown)


def test_usage_is_stored_once_per_message_and_the_largest_counts_win() -> None:
    """A6."""
    from lineage.actions.entries import NewUsage

    agent, _ = make_agent(make_root())
    row = Conversation.objects.get(pk=agent.conversation or 0)
    with transaction.atomic():
        locked = lock_conversation(row.pk)
        for tokens in (9, 209, 9):
            usage = NewUsage(message_id="msg_1", output_tokens=tokens, input_tokens=3)
            place_entries(conversation=locked, entries=[NewEntry(kind="assistant", message_id="msg_1", usage=usage)])
    usage_row = Usage.objects.get(conversation=row)
    assert (usage_row.output_tokens, usage_row.input_tokens) == (209, 3)


def _fork(source: Conversation, at: int) -> Conversation:
    return Conversation.objects.create(
        kind=Kind.BRANCH,
        root_id=source.root_id,
        parent=source,
        at=at,
        head=at,
        path=fork_path(source, at),
        created=source.created,
        touched=source.touched,
        state_since=source.state_since,
    )


def _grow(row: Conversation, count: int) -> None:
    with transaction.atomic():
        place_entries(conversation=lock_conversation(row.pk), entries=[NewEntry(kind="x.line")] * count)
    row.refresh_from_db()


def test_a_fork_goes_on_counting_and_reads_its_parents_entries() -> None:
    """L2, L3: forks of forks, and forks at inherited entries."""
    root = make_root().conversation
    _grow(root, 10)
    first = _fork(root, 7)
    _grow(first, 5)  # 8..12
    second = _fork(first, 9)
    _grow(second, 2)  # 10, 11
    third = _fork(second, 4)  # an entry of the root, two levels up
    _grow(third, 1)  # 5
    line = [(entry.conversation_id, entry.seq) for entry in entries_after(second, after=0)]
    assert line == [(root.pk, n) for n in range(1, 8)] + [
        (first.pk, 8),
        (first.pk, 9),
        (second.pk, 10),
        (second.pk, 11),
    ]
    assert third.path == [[root.pk, 4]]
    assert [entry.seq for entry in entries_after(third, after=0)] == [1, 2, 3, 4, 5]
    assert [entry.seq for entry in entries_before(second, limit=3)] == [9, 10, 11]
    assert [entry.seq for entry in entries_before(second, before=9, limit=3)] == [6, 7, 8]
    assert [entry.seq for entry in entries_before(second, inherited=False)] == [10, 11]
    assert [entry.seq for entry in entries_after(second, after=6, before=11, limit=3)] == [7, 8, 9]


def test_reading_the_newest_page_costs_no_more_in_a_long_history(django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    """C3."""
    row = make_root().conversation
    _grow(row, 900)
    with django_assert_num_queries(1):
        assert [entry.seq for entry in entries_before(row)] == list(range(851, 901))


def test_edits_of_earlier_entries_are_told() -> None:
    row = make_root().conversation
    with transaction.atomic():
        locked = lock_conversation(row.pk)
        place_entries(conversation=locked, entries=[NewEntry(kind="user"), NewEntry(kind="user")])
        edits = [NewEdit(target=1), NewEdit(target=2, messages=[{"role": "user", "content": "new"}])]
        place_entries(conversation=locked, entries=[NewEntry(kind="x.carrier", edits=edits, head=2)])
    told = json.loads(bytes(entries_json(entries_after(row, after=2))[0]))
    assert told["head"] == 2
    assert told["edits"] == [
        {"target": 1, "action": "omit"},
        {"target": 2, "action": "replace", "messages": [{"role": "user", "content": "new"}]},
    ]
    assert EntryEdit.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_many_writers_leave_no_gap() -> None:
    """R3, R5: real connections, one lock."""
    agent, _ = make_agent(make_root())
    place = agent.conversation
    assert place is not None
    problems: list[BaseException] = []

    def write() -> None:
        try:
            for _ in range(10):
                append_entries(who=agent, conversation=place, entries=[NewEntry(kind="x.line")] * 2)
        except BaseException as error:
            problems.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    seqs = list(Entry.objects.filter(conversation=place).order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, 121))


@pytest.mark.django_db(transaction=True)
def test_two_copies_of_one_request_append_once() -> None:
    """R4: also when they come at the same moment."""
    agent, _ = make_agent(make_root())
    place = agent.conversation
    assert place is not None
    results: list[list[int] | DomainError] = []
    barrier = threading.Barrier(2)

    def write() -> None:
        barrier.wait()
        try:
            results.append(
                append_entries(who=agent, conversation=place, entries=[NewEntry(kind="turn_end")], request_id="same")
            )
        finally:
            connection.close()

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[1], [1]]

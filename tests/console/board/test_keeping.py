"""The board keeper (R9): what is committed becomes rows, once, in the order of versions."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from console.access import Who
from console.board.keeping import NEEDS, fold_touched, refresh_for_time
from console.board.models import HOURS, BoardRow, TreeRow
from console.board.moments import today
from console.board.queries import brought_to_now
from console.clock import moved, now
from console.models import Touched
from lineage.actions.entries import NewEntry, NewUsage, lock_conversation, place_entries
from lineage.actions.landings import NewLanding, record_landing
from lineage.actions.roots import create_session
from lineage.actions.states import set_state
from lineage.models import Conversation, Kind, Root, State
from tests.factories import make_agent, make_person, make_root, make_session, say


def set_to(conversation: int, state: State, why: str = "") -> None:
    with transaction.atomic():
        set_state(conversation=lock_conversation(conversation), state=state, why=why)


def place(conversation: int, *entries: NewEntry) -> None:
    with transaction.atomic():
        place_entries(conversation=lock_conversation(conversation), entries=entries)


def answer(text: str = "Done.", *, cost: int | None = None, message: str = "m", hours_ago: int = 0) -> NewEntry:
    time = now() - timedelta(hours=hours_ago)
    usage = NewUsage(message_id=message, cost_micros=cost) if cost is not None else None
    return NewEntry(kind="assistant", model=[{"role": "assistant", "content": text}], usage=usage, time=time)


def board(root: Root) -> BoardRow:
    while fold_touched():
        pass
    return BoardRow.objects.get(pk=root.pk)


def everything() -> Any:
    """All rows as they are read today, without their versions: one that nothing happens to keeps its day and hour."""
    found: dict[Any, dict[str, Any]] = {}
    for row in [*map(brought_to_now, BoardRow.objects.all()), *TreeRow.objects.all()]:
        values = {field.name: getattr(row, field.name) for field in row._meta.fields}
        if values.pop("day") != today():
            values["cost_micros"] = None
        del values["version"]
        found[type(row).__name__, row.pk] = values
    return found


@pytest.mark.django_db
def test_a_root_has_a_row_with_the_states_of_its_conversations() -> None:
    root = make_root(title="Checkout service")
    sessions = [make_session(root) for _ in range(3)]
    set_to(sessions[0].pk, State.RUNNING)
    set_to(sessions[1].pk, State.APPROVAL, "asks to run alembic upgrade head")
    row = board(root)
    assert (row.title, row.states) == ("Checkout service", {"idle": 1, "running": 1, "approval": 1})
    assert not Touched.objects.exists()
    set_to(sessions[0].pk, State.IDLE)
    assert board(root).states == {"idle": 2, "approval": 1}


@pytest.mark.django_db
def test_subagents_stand_under_their_owner_and_a_tally_runs_nothing() -> None:
    root = make_root()
    session = make_session(root)
    agent = create_session(root=root, title="sub")
    Conversation.objects.filter(pk=agent.pk).update(kind=Kind.AGENT, owner=session)
    assert board(root).states == {"idle": 1}
    place(root.pk, NewEntry(kind="user", prompt="What next?"))
    assert board(root).states == {"idle": 2}
    Root.objects.filter(pk=root.pk).update(since=1)
    place(root.pk, answer())
    assert board(root).states == {"idle": 1}


@pytest.mark.django_db
def test_what_waits_for_a_person_is_listed_the_oldest_first() -> None:
    root = make_root()
    sessions = [make_session(root, f"s{n}") for n in range(NEEDS + 2)]
    with moved(timedelta(minutes=-5)):
        set_to(sessions[1].pk, State.FAILED, "no answer after 3 retries")
    set_to(sessions[0].pk, State.ANSWER, "asks about shipping tax")
    row = board(root)
    assert [(need["kind"], need["title"], need["why"]) for need in row.needs] == [
        ("failed", "s1", "no answer after 3 retries"),
        ("answer", "s0", "asks about shipping tax"),
    ]
    assert (row.needing, row.needing_since) == (2, Conversation.objects.get(pk=sessions[1].pk).state_since)
    for session in sessions:
        set_to(session.pk, State.APPROVAL)
    row = board(root)
    assert (len(row.needs), row.needing) == (NEEDS, NEEDS + 2)
    for session in sessions:
        set_to(session.pk, State.IDLE)
    row = board(root)
    assert (row.needs, row.needing, row.needing_since) == ([], 0, None)


@pytest.mark.django_db
def test_the_last_line_names_who_said_it_and_where() -> None:
    root = make_root()
    who, _ = make_agent(root, "wren")
    assert who.conversation is not None
    seqs = say(who, who.conversation, "Cap the schedule", "The schedule is capped\nat the cart's lifetime.")
    last = board(root).last
    assert last is not None
    assert (last["text"], last["conversation"], last["seq"]) == (
        "The schedule is capped at the cart's lifetime.",
        who.conversation,
        seqs[1],  # the end of the turn tells nothing
    )
    place(who.conversation, NewEntry(kind="turn_end"))
    assert board(root).last == last
    place(who.conversation, NewEntry(kind="user", author=who.actor, prompt="And the jitter?"))
    last = board(root).last
    assert last is not None
    assert (last["author"]["name"], last["text"]) == ("wren", "And the jitter?")


@pytest.mark.django_db
def test_activity_counts_when_things_happened() -> None:
    root = make_root()
    session = make_session(root)
    place(session.pk, answer(), answer(hours_ago=1), answer(hours_ago=1), answer(hours_ago=48))
    activity = board(root).activity
    assert (activity[-2:], sum(activity)) == ([2, 2], 4)  # the session's line in the root counts too
    place(session.pk, answer())
    assert board(root).activity[-2:] == [2, 3]


@pytest.mark.django_db
def test_what_today_cost_and_landed() -> None:
    root = make_root()
    session = make_session(root)
    assert board(root).cost_micros is None
    place(
        session.pk,
        answer(cost=500, message="a"),
        answer(cost=70, message="b"),
        answer(cost=9, message="c", hours_ago=48),
    )
    assert board(root).cost_micros == 570
    place(session.pk, answer(cost=800, message="a"))  # the same answer, counted anew
    assert board(root).cost_micros == 870
    landing = NewLanding(
        at=1, sha="a41c9e2", base="b" * 7, target="main", commits=[], paths=[], divergence="", title="Capture twice"
    )
    record_landing(who=None, conversation=session.pk, new=landing)
    assert board(root).landed == 1


@pytest.mark.django_db
def test_days_and_hours_pass_without_anything_being_committed() -> None:
    root, quiet = make_root(), make_root()
    session = make_session(root)
    place(session.pk, answer(cost=500))
    before, version = board(root), board(quiet).version
    assert refresh_for_time() == 0
    with moved(timedelta(hours=3)):
        assert refresh_for_time() == 1
        assert refresh_for_time() == 0
    row = BoardRow.objects.get(pk=root.pk)
    assert (row.activity[-4], row.activity[-1], row.hour) == (before.activity[-1], 0, before.hour + 3)
    assert row.version > before.version
    with moved(timedelta(hours=30)):
        assert refresh_for_time() == 1
    row = BoardRow.objects.get(pk=root.pk)
    assert (row.cost_micros, row.activity) == (None, [0] * HOURS)
    with moved(timedelta(hours=30)):
        place(session.pk, answer(cost=40, message="b"))
        assert board(root).cost_micros == 40
    assert BoardRow.objects.get(pk=quiet.pk).version == version


@pytest.mark.django_db
def test_each_changed_row_gets_a_higher_version_and_its_roots_own_row_the_highest() -> None:
    one, other = make_root(), make_root()
    sessions = [make_session(one) for _ in range(3)]
    row = board(one)
    versions = list(TreeRow.objects.filter(root=one.pk).order_by("version").values_list("version", flat=True))
    assert versions[-1] < row.version
    assert len({*versions, row.version, board(other).version}) == 6
    set_to(sessions[1].pk, State.RUNNING)
    assert board(one).version > TreeRow.objects.get(pk=sessions[1].pk).version > row.version
    assert TreeRow.objects.filter(root=one.pk, version__gt=row.version).count() == 1


@pytest.mark.django_db
def test_a_root_that_is_no_more_loses_its_rows(django_capture_on_commit_callbacks: Any) -> None:
    root = make_root()
    session = make_session(root)
    assert board(root).states
    with connection.cursor() as cursor:  # as an erasure does
        cursor.execute("SET LOCAL console.erasing = 'on'")
        for table in ("console_membership", "console_token", "lineage_tallyline"):
            cursor.execute(f"DELETE FROM {table} WHERE root_id = %s", [root.pk])
        for table in ("lineage_entry", "lineage_tallyseen"):
            cursor.execute(
                f"DELETE FROM {table} WHERE conversation_id IN (SELECT id FROM lineage_conversation WHERE root_id = %s)",
                [root.pk],
            )
        cursor.execute("DELETE FROM lineage_conversation WHERE root_id = %s", [root.pk])
        cursor.execute("DELETE FROM lineage_root WHERE conversation_id = %s", [root.pk])
    Touched.objects.create(conversation=root.pk)
    fold_touched()
    assert not BoardRow.objects.filter(pk=root.pk).exists()
    assert not TreeRow.objects.filter(pk=session.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_a_fold_that_fails_leaves_everything_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_root()
    with monkeypatch.context() as broken:
        broken.setattr("console.board.keeping._announce", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fold_touched()
    assert not BoardRow.objects.exists()
    assert board(root).title == root.conversation.title


@pytest.mark.django_db(transaction=True)
def test_what_is_not_committed_yet_is_folded_later() -> None:
    root = make_root()
    session = make_session(root)
    assert board(root).states == {"idle": 1}
    changed, go = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic():
            set_state(conversation=lock_conversation(session.pk), state=State.RUNNING)
            changed.set()
            assert go.wait(10)
        connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    assert changed.wait(10)
    make_session(root)  # touched later, committed earlier
    assert board(root).states == {"idle": 2}
    go.set()
    writer.join()
    assert board(root).states == {"idle": 1, "running": 1}


@pytest.mark.django_db(transaction=True)
def test_many_keepers_count_once() -> None:
    root = make_root()
    who, _ = make_agent(root)
    assert who.conversation is not None

    def fold() -> None:
        for _ in range(20):
            fold_touched(limit=1)
        connection.close()

    keepers = [threading.Thread(target=fold) for _ in range(3)]
    for keeper in keepers:
        keeper.start()
    for number in range(15):
        say(who, who.conversation, f"ask {number}", "answer")
    for keeper in keepers:
        keeper.join()
    row = board(root)
    assert (row.states, sum(row.activity)) == ({"idle": 1}, 1 + 15 * 3)


steps = st.lists(
    st.tuples(
        st.sampled_from(["session", "running", "approval", "failed", "idle", "say", "spend", "tally", "hours", "fold"]),
        st.integers(0, 5),
    ),
    max_size=16,
)


class CountingIsExact(TestCase):
    """Whatever happens in between: rows that were kept by their changes equal rows that are made anew."""

    @settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(steps=steps)
    @example(steps=[("spend", 1), ("fold", 0), ("say", 1)])  # a conversation goes on with what happened before
    def test_rows_kept_by_changes_equal_rows_made_anew(self, steps: list[tuple[str, int]]) -> None:
        who: Who = make_person()
        roots = [make_root(who), make_root(who)]
        sessions = [make_session(root) for root in roots]
        offset = timedelta()
        for step, number in steps:
            session = sessions[number % len(sessions)]
            with moved(offset):
                match step:
                    case "session":
                        sessions.append(make_session(roots[number % 2]))
                    case "say":
                        place(session.pk, answer(f"line {number}", hours_ago=number))
                    case "spend":
                        place(session.pk, answer(cost=number * 10, message=f"m{number}"))
                    case "tally":
                        place(roots[number % 2].pk, NewEntry(kind="user", prompt="What next?"))
                        Root.objects.filter(pk=roots[number % 2].pk).update(since=1)
                        place(roots[number % 2].pk, answer())
                    case "hours":
                        offset += timedelta(hours=number * 5)
                        refresh_for_time()
                    case "fold":
                        fold_touched()
                    case state:
                        set_to(session.pk, State(state))
        with moved(offset):
            while fold_touched():
                pass
            refresh_for_time()
            kept = everything()
            BoardRow.objects.all().delete()
            TreeRow.objects.all().delete()
            Touched.objects.bulk_create(
                Touched(conversation=pk) for pk in Conversation.objects.values_list("pk", flat=True)
            )
            while fold_touched():
                pass
            afresh = everything()
        assert kept == afresh

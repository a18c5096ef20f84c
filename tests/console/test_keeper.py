"""Periodic work: one process of all does it, and a failure or a lost connection does not end it."""

import queue
import threading
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from console.keeper import Keeper, keep, keep_until, keepers, run_keeper

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stopped() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def start(keeper: Keeper, stopped: threading.Event) -> threading.Thread:
    thread = threading.Thread(target=run_keeper, args=(keeper, stopped))
    thread.start()
    return thread


def test_one_works_and_the_next_goes_on_when_it_ends(stopped: threading.Event) -> None:
    worked: queue.Queue[str] = queue.Queue()
    first_stopped = threading.Event()

    def keeper(who: str) -> Keeper:
        def work() -> bool:
            worked.put(who)
            return False

        return Keeper(name="test", every=0.01, work=work)

    first = start(keeper("first"), first_stopped)
    assert worked.get(timeout=30) == "first"
    second = start(keeper("second"), stopped)
    for _ in range(20):
        assert worked.get(timeout=30) == "first"
    first_stopped.set()
    first.join(30)
    while worked.get(timeout=30) == "first":
        pass
    stopped.set()
    second.join(30)


def test_more_to_do_is_done_at_once(stopped: threading.Event) -> None:
    left = list(range(50))

    def work() -> bool:
        left.pop()
        if not left:
            stopped.set()
        return bool(left)

    start(Keeper(name="test", every=600, work=work), stopped).join(30)
    assert left == []


def test_a_failure_and_a_lost_connection_are_survived(
    stopped: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("console.keeper.AFTER_FAILURE", 0.0)
    rounds = []

    def work() -> bool:
        rounds.append(1)
        if len(rounds) == 1:
            raise ValueError("a bug")
        if len(rounds) == 2:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                pid = cursor.fetchone()[0]
            with psycopg.connect(dsn(), autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        stopped.set()
        return False

    start(Keeper(name="test", every=0.01, work=work), stopped).join(30)
    assert len(rounds) == 3
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


def test_registered_keepers_run_until_they_are_stopped(
    stopped: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.keeper.keepers", {})
    ran: queue.Queue[str] = queue.Queue()

    @keep("one", every=600)
    def one() -> bool:
        ran.put("one")
        return False

    @keep("two", every=600)
    def two() -> bool:
        ran.put("two")
        return False

    assert "one" not in keepers
    thread = threading.Thread(target=keep_until, args=(stopped,))
    thread.start()
    assert {ran.get(timeout=30), ran.get(timeout=30)} == {"one", "two"}
    stopped.set()
    thread.join(30)
    assert not thread.is_alive()


def dsn() -> str:
    """The database of this test."""
    found = connection.settings_dict
    return f"host={found['HOST']} port={found['PORT']} user={found['USER']} dbname={found['NAME']}"

"""Races with real connections and without sleeps (STYLE 25): who must wait is waited for until the server says so."""

import threading
from collections.abc import Callable

from django.db import connection


def together[R](*works: Callable[[], R]) -> list[R | Exception]:
    """Run them at the same moment, each on a connection of its own; what each returned or raised, in order."""
    barrier = threading.Barrier(len(works))
    results: dict[int, R | Exception] = {}

    def run(number: int, work: Callable[[], R]) -> None:
        try:
            barrier.wait()
            results[number] = work()
        except Exception as error:
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[number] for number in range(len(works))]


def in_thread(work: Callable[[], object]) -> threading.Thread:
    """Start it on a connection of its own."""

    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def wait_until_blocked(count: int = 1) -> None:
    """Return when the server reports that so many connections of this database wait for a lock."""
    waiting = 0
    while waiting < count:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")  # inside a transaction it would show the same for ever
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            (waiting,) = cursor.fetchone() or (0,)

"""`manage.py bench_lineage`: how long a context and the news of a finish take (L4, DESIGN 11)."""

import statistics
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import connection, transaction

from console.access import Who, who_is_user
from console.actions.people import make_user
from console.embedded.children import start_child, stop_children
from console.management.base import ConsoleCommand
from console.models import Role
from console.processes import worker_children
from lineage.actions.entries import NewEntry, append_entries, lock_conversation, place_entries
from lineage.actions.forks import fork_conversation
from lineage.actions.notify import request_notify
from lineage.actions.roots import create_root
from lineage.actions.tokens import make_token
from lineage.loading import load_context
from lineage.measuring import count_waiting, is_new_console, newest_note, told_after
from lineage.models import Conversation, Root

READY_S = 60.0  # for a worker to start
TOLD_S = 60.0  # for a finish to be told at all


class Command(ConsoleCommand):
    help = (
        "Measure a context of 10,000 entries through 50 forks, and the time from the commit that makes a conversation idle to "
        "the delivered note. It writes a lot: give it a data directory of its own with --data."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=["context", "notify"])
        parser.add_argument("--waiting", type=int, default=500, metavar="N", help="waiting notifies (default: 500)")
        parser.add_argument("--rounds", type=int, default=200, metavar="N", help="finishes to measure (default: 200)")

    def handle(self, *args: Any, **options: Any) -> None:
        if not is_new_console():
            raise CommandError("This data directory is in use. Give the benchmark one of its own: --data DIR.")
        who = who_is_user(make_user(username="bench", superuser=True))
        root = create_root(who=who, title="Benchmark")
        if options["what"] == "context":
            self._context(root)
        else:
            self._notify(who, root, options["waiting"], options["rounds"])

    def _context(self, root: Root) -> None:
        conversation = root.conversation
        for number in range(50):
            entries = [
                NewEntry(kind=role, model=[{"role": role, "content": f"{number} {n} " + "said " * 40}])
                for n in range(100)
                for role in ("user", "assistant")
            ]
            with transaction.atomic():
                row = lock_conversation(conversation.pk)
                place_entries(conversation=row, entries=entries)
                conversation = fork_conversation(source=row, at=row.head) if number < 49 else row
        _analyze()
        times = [_timed(lambda: load_context(conversation)) for _ in range(30)]
        self._say(f"context of {conversation.head} entries through 50 segments", times)

    def _notify(self, who: Who, root: Root, waiting: int, rounds: int) -> None:
        with transaction.atomic():
            place_entries(conversation=lock_conversation(root.pk), entries=[NewEntry(kind="system")])
            row = lock_conversation(root.pk)
            callers = [fork_conversation(source=row, at=1).pk for _ in range(waiting)]
            shared, *targets = [fork_conversation(source=row, at=1) for _ in range(1 + waiting)]
        for target in targets:
            _append(who, target, "begins", end=False)
        (child,) = worker_children(1)
        running = {child: start_child(child)}
        try:
            for caller, target in zip(callers, targets, strict=True):
                request_notify(who=who, caller=caller, target=target.pk, wake=False)
            _until(lambda: count_waiting() == waiting, READY_S, "the notifies to wait")
            _analyze()
            self._one_by_one(who, callers, targets, rounds)
            self._all_at_once(who, "as notes", callers, shared, wake=False)
            self._all_at_once(who, "waking each", callers, shared, wake=True)
            sessions = _sessions(root, waiting)
            self._all_at_once(who, "as mail of sessions", sessions, shared, wake=True)
        finally:
            stop_children(running)

    def _one_by_one(self, who: Who, callers: list[int], targets: list[Conversation], rounds: int) -> None:
        """One conversation after the other finishes while all others wait."""
        times: list[float] = []
        for number in range(min(rounds, len(targets))):
            times += _tell(who, targets[number], f"done {number}", [callers[number]])
            request_notify(who=who, caller=callers[number], target=targets[number].pk, wake=False)
            _until(lambda: count_waiting() == len(targets), TOLD_S, "the notify to wait again")
        self._say(f"one finish, one of {len(targets)} waiting", times)

    def _all_at_once(self, who: Who, how: str, callers: list[int], target: Conversation, *, wake: bool) -> None:
        """All wait for the same conversation, and it finishes; beside them those of the other conversations go on waiting."""
        times: list[float] = []
        for number in range(5):
            all_wait = partial(_wait_together, count_waiting() + len(callers))
            _append(who, target, f"again {number}", end=False)
            for caller in callers:
                request_notify(who=who, caller=caller, target=target.pk, wake=wake)
            _until(all_wait, READY_S, "the notifies to wait")
            _analyze()
            times += _tell(who, target, f"all told {number}", callers)
        self._say(f"one finish told to {len(callers)} at once {how}, 5 times", times)

    def _say(self, what: str, times: list[float]) -> None:
        ranked = sorted(1000 * seconds for seconds in times)
        p99 = ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))]
        self.stdout.write(
            f"{what}: {len(ranked)} measured, p50 {statistics.median(ranked):.1f} ms, p99 {p99:.1f} ms, "
            f"longest {ranked[-1]:.1f} ms"
        )


def _append(who: Who, conversation: Conversation, text: str, *, end: bool) -> None:
    entries = [NewEntry(kind="assistant", model=[{"role": "assistant", "content": text}])]
    append_entries(
        who=who, conversation=conversation.pk, entries=[*entries, NewEntry(kind="turn_end")] if end else entries
    )


def _tell(who: Who, target: Conversation, text: str, callers: list[int]) -> list[float]:
    """End a turn; seconds from its commit until each caller has its note, seen by asking the database often."""
    before, found = newest_note(), dict[int, float]()
    _append(who, target, text, end=True)
    began = time.perf_counter()

    def all_told() -> bool:
        told = told_after(before)
        elapsed = time.perf_counter() - began
        for caller in told:
            found.setdefault(caller, elapsed)
        return len(found) == len(callers)

    _until(all_told, TOLD_S, "the notes")
    return [found[caller] for caller in callers]


def _wait_together(count: int) -> bool:
    return count_waiting() >= count


def _sessions(root: Root, count: int) -> list[int]:
    made = [make_token(who=None, name=f"agent {number}", root=root.pk, role=Role.AGENT) for number in range(count)]
    return [one.token.conversation_id for one in made]


def _until(is_there: Callable[[], bool], seconds: float, what: str) -> None:
    """Ask every 2 ms."""
    end = time.perf_counter() + seconds
    pause = threading.Event()
    while not is_there():
        if time.perf_counter() > end:
            raise CommandError(f"Waited {seconds:.0f} s for {what}.")
        pause.wait(0.002)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _analyze() -> None:
    """Autovacuum would gather statistics after a minute; a benchmark does not wait for it."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")

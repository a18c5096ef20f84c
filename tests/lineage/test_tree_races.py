"""L10, R5: many at once with real connections. No deadlock, nothing told twice, no gap."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import connection, connections, transaction

from console.access import Who
from documents.verifying import document_faults
from lineage.actions.abstracts import write_abstract
from lineage.actions.branches import start_branch
from lineage.actions.entries import NewEntry, append_entries, lock_conversation
from lineage.actions.landings import NewLanding, record_landing
from lineage.actions.notify import request_notify
from lineage.models import (
    Conversation,
    Entry,
    Landing,
    Note,
    OpenAbstract,
    Root,
    TallyKind,
    TallyLine,
    Task,
    TaskStatus,
    Wake,
)
from lineage.tasks.working import run_due, run_subject
from lineage.verifying import conversation_faults
from tests.factories import make_person, make_root, say
from tests.lineage.working import work

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = 200
THREADS = 16  # connections at a time; more would only queue in the test's own pool


@pytest.fixture
def mira() -> Who:
    return make_person(superuser=True)


@pytest.fixture
def tally(mira: Who) -> Root:
    root = make_root(mira)
    for number in range(8):
        start_branch(who=mira, source=root.pk, prompt=f"Number {number}.")
    work()
    for branch in branches(root):
        say(mira, branch, "Go.", f"Answer of {branch}.", end=False)
    return root


def branches(root: Root) -> list[int]:
    return list(Conversation.objects.filter(root=root, kind="branch").order_by("pk").values_list("pk", flat=True))


def at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run these in threads with connections of their own; their answers, or the first error."""
    barrier = Barrier(min(THREADS, len(calls)))

    def run(number: int, call: Callable[[], Any]) -> Any:
        with closing(connections["default"]):
            if number < barrier.parties:
                barrier.wait(timeout=60)
            return call()

    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result(timeout=110) for future in [pool.submit(run, n, call) for n, call in enumerate(calls)]]


def landing(title: str) -> NewLanding:
    return NewLanding(
        at=0, sha="0" * 40, base="1" * 40, target="main", commits=[], paths=["a"], divergence="", title=title
    )


def check_streams() -> None:
    for row in Conversation.objects.all():
        seqs = list(Entry.objects.filter(conversation=row).order_by("seq").values_list("seq", flat=True))
        assert seqs == list(range(row.at + 1, row.head + 1))


def test_notifies_landings_abstracts_and_workers_at_once(mira: Who, tally: Root) -> None:
    found = branches(tally)
    pairs = [(caller, target) for caller in found for target in found if caller != target]
    calls: list[Callable[[], Any]] = []
    for number in range(AT_ONCE):
        caller, target = pairs[number % len(pairs)]
        branch = found[number % len(found)]
        calls += (
            [partial(request_notify, who=mira, caller=caller, target=target, wake=False)],
            [partial(write_abstract, who=mira, conversation=branch, text=f"State {number}.", at=0)],
            [partial(record_landing, who=mira, conversation=branch, new=landing(f"Landing {number}"))],
        )[number % 3]
    for branch in found:
        calls.insert(5 * branch % len(calls), partial(end_turn, mira, branch))
    calls += [run_workers] * 8
    at_once(calls)
    work()
    check_streams()
    landings = TallyLine.objects.filter(root=tally, kind=TallyKind.LANDING).count()
    assert landings == Landing.objects.count() == sum(1 for n in range(AT_ONCE) if n % 3 == 2)
    told = list(Note.objects.filter(source="finished").values_list("submission__conversation", "sender"))
    assert len(told) == len(set(told))
    assert set(told) == {(caller, target) for n, (caller, target) in enumerate(cycled(pairs)) if n % 3 == 0}
    assert not Task.objects.exclude(status__in=[TaskStatus.TERMINAL]).exists()
    for branch in found:
        assert OpenAbstract.objects.filter(conversation=branch).count() <= 1
    assert [*document_faults(), *conversation_faults()] == []


def cycled(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [pairs[number % len(pairs)] for number in range(AT_ONCE)]


def end_turn(who: Who, conversation: int) -> None:
    append_entries(who=who, conversation=conversation, entries=[NewEntry(kind="turn_end")])


def run_workers() -> None:
    """What a worker does, beside others."""
    run_due()
    for subject in list(Wake.objects.values_list("subject", flat=True)):
        run_subject(subject)


def test_many_workers_tell_many_waiters_once(mira: Who, tally: Root) -> None:
    """L11: eight workers get the same hint."""
    found = branches(tally)
    target, callers = found[0], found[1:]
    for caller in callers:
        request_notify(who=mira, caller=caller, target=target, wake=False)
    work()
    end_turn(mira, target)
    at_once([lambda: run_subject(f"conversation:{target}")] * 8)
    work()
    assert Note.objects.filter(source="finished").count() == len(callers)
    check_streams()


def test_a_waiter_that_looks_while_the_target_ends_misses_nothing(mira: Who, tally: Root) -> None:
    """L11: looking and parking are one transaction under the target's lock, so it either sees the end or is woken by it. The
    test holds that lock until the server reports that the waiter is blocked by it."""
    target, caller = branches(tally)[:2]
    request_notify(who=mira, caller=caller, target=target, wake=False)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            lock_conversation(target)
            looking = pool.submit(run_and_close)
            wait_until_blocked()
            end_turn(mira, target)
            assert not looking.done()
        looking.result(timeout=60)
    assert Note.objects.filter(source="finished", submission__conversation=caller).count() == 1


def run_and_close() -> None:
    with closing(connections["default"]):
        run_due()


def wait_until_blocked() -> None:
    """Until some other connection of this database waits for a lock that this one holds."""
    with connection.cursor() as cursor:
        while True:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            if (cursor.fetchone() or (0,))[0]:
                return


def test_two_first_branches_make_one_tally(mira: Who) -> None:
    """L13: decided under the root's lock."""
    root = make_root(mira)
    at_once([partial(start_branch, who=mira, source=root.pk, prompt=f"Number {n}.") for n in range(8)])
    root.refresh_from_db()
    assert root.since == 1
    kinds = list(Entry.objects.filter(conversation=root.pk).order_by("seq").values_list("kind", flat=True))
    assert kinds == ["reset"] + ["lineage.branched"] * 8
    check_streams()

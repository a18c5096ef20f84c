"""L9, L11: phases and leases, waits and wakes, failures, aborts, and rows that this version cannot run."""

from collections.abc import Iterator
from datetime import timedelta
from unittest import mock
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from console.clock import moved, now
from console.errors import DomainError
from lineage.actions.entries import NewEntry, lock_conversation, place_entries
from lineage.actions.starts import create_task
from lineage.actions.tasks import abort_task, retry_task
from lineage.actions.wakes import task_subject, wake
from lineage.models import Conversation, Entry, State, Task, TaskOutcome, TaskStatus, Wake
from lineage.tasks import nudges
from lineage.tasks.claiming import LEASE, claim_one
from lineage.tasks.definitions import Checkpoint, Definition
from lineage.tasks.leases import look_at_held
from lineage.tasks.running import Run
from lineage.tasks.sweeping import mark_blocked, sweep_tasks
from lineage.tasks.working import run_claim, run_due, run_nudged, run_subject
from tests.factories import make_person, make_root
from tests.lineage.working import kind_in_place, work

pytestmark = pytest.mark.django_db


class Errand:
    """A kind of two phases that a test can make fail, wait, or lose its worker. It writes one entry in each phase."""

    def __init__(self) -> None:
        self.fails: list[Exception] = []
        self.waits_for = ""
        self.ran: list[str] = []

    def first(self, run: Run) -> None:
        self.ran.append("first")
        if self.fails:
            raise self.fails.pop()
        with run.commit() as commit:
            self._write(commit.conversation, "first")
            commit.go("second", {"carried": run.input["given"]})

    def second(self, run: Run) -> None:
        self.ran.append("second")
        with run.commit() as commit:
            if self.waits_for:
                commit.wait(self.waits_for, shows=State.ANSWER, why="asks")
                return
            self._write(commit.conversation, run.facts["carried"])
            commit.complete({"done": True})

    def definition(self, **more: object) -> Definition:
        values = {
            "kind": "errand",
            "version": 2,
            "first": "first",
            "phases": {"first": self.first, "second": self.second},
            "foreground": True,
            **more,
        }
        return Definition(**values)  # type: ignore[arg-type]

    def _write(self, conversation: Conversation, text: str) -> None:
        place_entries(conversation=conversation, entries=[NewEntry(kind="system", data={"text": text})])


@pytest.fixture
def errand() -> Iterator[Errand]:
    found = Errand()
    with kind_in_place(found.definition()):
        yield found


@pytest.fixture
def conversation() -> Conversation:
    return make_root().conversation


def start(conversation: Conversation, kind: str = "errand", parent: Task | None = None) -> Task:
    with transaction.atomic():
        row = lock_conversation(conversation.pk)
        return create_task(kind=kind, conversation=row, input={"given": "things"}, parent=parent)


def texts(conversation: Conversation) -> list[str]:
    return [entry.data for entry in Entry.objects.filter(conversation=conversation).order_by("seq")]


def test_phases_run_one_after_the_other_and_carry_their_facts(errand: Errand, conversation: Conversation) -> None:
    task = start(conversation)
    work()
    task.refresh_from_db()
    assert (task.status, task.outcome, task.result) == (TaskStatus.TERMINAL, TaskOutcome.COMPLETED, '{"done":true}')
    assert texts(conversation) == ['{"text":"first"}', '{"text":"things"}']
    assert errand.ran == ["first", "second"]


def test_a_waiting_task_holds_no_worker_and_shows_what_it_waits_for(errand: Errand, conversation: Conversation) -> None:
    """L9, C2."""
    errand.waits_for = "answer:1"
    task = start(conversation)
    work()
    task.refresh_from_db()
    assert (task.status, task.lease, task.phase) == (TaskStatus.WAITING, None, "second")
    assert run_due() == 0
    errand.waits_for = ""
    wake("answer:2")
    work()
    assert errand.ran == ["first", "second"]
    wake("answer:1")
    work()
    task.refresh_from_db()
    assert task.status == TaskStatus.TERMINAL
    assert not Wake.objects.exists()


def test_a_phase_that_wrote_nothing_stands_is_run_again_after_the_lease(
    errand: Errand, conversation: Conversation
) -> None:
    """L10: its worker is gone; nobody else has the task before the lease ends."""
    task = start(conversation)
    claim = claim_one(task.pk)
    assert run_due() == 0
    with moved(LEASE + timedelta(seconds=1)):
        work()
        task.refresh_from_db()
        assert task.outcome == TaskOutcome.COMPLETED
        run_claim(claim)
    assert texts(conversation) == ['{"text":"first"}', '{"text":"things"}']


def test_a_worker_that_lost_its_lease_writes_nothing(errand: Errand, conversation: Conversation) -> None:
    task = start(conversation)
    claim = claim_one(task.pk)
    Task.objects.filter(pk=task.pk).update(lease=uuid4())
    run_claim(claim)
    assert texts(conversation) == []
    task.refresh_from_db()
    assert (task.status, task.phase) == (TaskStatus.RUNNING, "first")


def test_a_failure_rests_and_is_tried_again(errand: Errand, conversation: Conversation) -> None:
    errand.fails = [ValueError("the network is away")]
    task = start(conversation)
    work()
    task.refresh_from_db()
    assert (task.status, task.error) == (TaskStatus.PENDING, "ValueError: the network is away")
    assert task.due > now()
    with moved(timedelta(seconds=2)):
        work()
    task.refresh_from_db()
    assert task.outcome == TaskOutcome.COMPLETED


def test_it_fails_for_good_once_its_tries_are_used_up(conversation: Conversation) -> None:
    errand = Errand()
    errand.fails = [ValueError("no")] * 9
    with kind_in_place(errand.definition(tries=3, pause_s=2)):
        task = start(conversation)
        for minutes in range(4):
            with moved(timedelta(minutes=minutes)):
                work()
    task.refresh_from_db()
    assert (task.status, task.outcome) == (TaskStatus.TERMINAL, TaskOutcome.FAILED)
    assert errand.ran == ["first"] * 3
    conversation.refresh_from_db()
    assert (conversation.state, conversation.state_why) == (State.FAILED, "ValueError: no")


def test_pauses_double_up_to_the_longest() -> None:
    definition = Errand().definition(pause_s=2.0, longest_pause_s=60.0)
    assert [definition.pause_after(n) for n in (1, 2, 3, 6, 60)] == [2, 4, 8, 60, 60]


def test_a_refusal_is_not_tried_again(errand: Errand, conversation: Conversation) -> None:
    errand.fails = [DomainError("tally", "It runs no turns.")]
    task = start(conversation)
    work()
    task.refresh_from_db()
    assert (task.outcome, task.error) == (TaskOutcome.FAILED, "It runs no turns.")


def test_a_phase_whose_workers_keep_dying_fails_in_the_end(conversation: Conversation) -> None:
    """A task that kills its worker must not do so for ever."""
    errand = Errand()
    with kind_in_place(errand.definition(tries=2)):
        task = start(conversation)
        for claims in range(3):
            with moved((LEASE + timedelta(seconds=1)) * claims):
                claim = claim_one(task.pk)
                assert claim.tasks
        run_claim(claim)
    task.refresh_from_db()
    assert task.outcome == TaskOutcome.FAILED
    assert "2 times in phase first" in task.error
    assert errand.ran == []


def test_an_aborted_task_that_waits_ends_at_once(errand: Errand, conversation: Conversation) -> None:
    errand.waits_for = "answer:1"
    task = start(conversation)
    work()
    abort_task(who=None, task=task.pk)
    task.refresh_from_db()
    assert (task.status, task.outcome) == (TaskStatus.TERMINAL, TaskOutcome.ABORTED)
    conversation.refresh_from_db()
    assert conversation.state == State.IDLE


def test_a_running_one_ends_at_its_next_commit(errand: Errand, conversation: Conversation) -> None:
    task = start(conversation)
    claim = claim_one(task.pk)
    abort_task(who=None, task=task.pk)
    task.refresh_from_db()
    assert task.status == TaskStatus.RUNNING
    run_claim(claim)
    task.refresh_from_db()
    assert task.outcome == TaskOutcome.ABORTED
    assert texts(conversation) == []


def test_what_began_outside_is_undone(conversation: Conversation) -> None:
    errand, undone = Errand(), []
    errand.waits_for = "answer:1"

    def undo(run: Run) -> None:
        undone.append(run.phase)
        with run.commit() as commit:
            commit.abandon()

    with kind_in_place(errand.definition(abort=undo)):
        task = start(conversation)
        work()
        abort_task(who=None, task=task.pk)
        work()
    task.refresh_from_db()
    assert (undone, task.outcome) == (["second"], TaskOutcome.ABORTED)


def test_a_task_ends_after_its_children(errand: Errand, conversation: Conversation) -> None:
    """A running child ends at its own commit; until then the parent is completing."""
    parent = start(conversation)
    child = start(conversation, parent=parent)
    held = claim_one(child.pk)
    waiter_subject = task_subject(parent.pk)
    run_due()
    parent.refresh_from_db()
    assert (parent.status, parent.outcome) == (TaskStatus.COMPLETING, TaskOutcome.COMPLETED)
    errand.waits_for = waiter_subject
    run_claim(held)
    parent.refresh_from_db()
    child.refresh_from_db()
    assert (parent.status, child.outcome) == (TaskStatus.TERMINAL, TaskOutcome.ABORTED)


def test_an_operator_runs_a_failed_one_again(errand: Errand) -> None:
    who = make_person()
    conversation = make_root(who).conversation
    errand.fails = [DomainError("x", "No.")]
    task = start(conversation)
    work()
    retry_task(who=who, task=task.pk)
    work()
    task.refresh_from_db()
    assert task.outcome == TaskOutcome.COMPLETED
    with pytest.raises(DomainError, match="only a failed one"):
        retry_task(who=who, task=task.pk)


def test_an_unknown_kind_stays_blocked_and_visible_until_it_is_known(conversation: Conversation) -> None:
    errand = Errand()
    with kind_in_place(errand.definition()):
        task = start(conversation)
    work()
    mark_blocked()
    task.refresh_from_db()
    assert (task.status, task.attempts) == (TaskStatus.PENDING, 0)
    assert task.blocked == "No worker here runs the kind errand."
    with kind_in_place(errand.definition()):
        sweep_tasks()
        task.refresh_from_db()
        assert task.blocked == ""
        work()
    task.refresh_from_db()
    assert task.outcome == TaskOutcome.COMPLETED


def test_a_newer_version_stays_blocked(errand: Errand, conversation: Conversation) -> None:
    task = start(conversation)
    Task.objects.filter(pk=task.pk).update(version=3)
    work()
    mark_blocked()
    task.refresh_from_db()
    assert task.status == TaskStatus.PENDING
    assert task.blocked == "No worker here runs version 3 of errand; it runs version 2."


def test_an_older_version_is_migrated(conversation: Conversation) -> None:
    """Old row, new code: its phase had another name and its input another key."""
    errand = Errand()

    def migrate(version: int, old: Checkpoint) -> Checkpoint:
        assert (version, old.phase) == (1, "begin")
        return Checkpoint(phase="first", facts=old.facts, input={"given": old.input["what"]})

    with kind_in_place(errand.definition(oldest=1, migrate=migrate)):
        task = start(conversation)
        Task.objects.filter(pk=task.pk).update(version=1, phase="begin", input='{"what":"old things"}')
        work()
    task.refresh_from_db()
    assert (task.version, task.outcome) == (2, TaskOutcome.COMPLETED)
    assert texts(conversation)[1] == '{"text":"old things"}'


def test_an_older_version_that_cannot_be_migrated_is_blocked_not_lost(conversation: Conversation) -> None:
    errand = Errand()

    def migrate(version: int, old: Checkpoint) -> Checkpoint:
        raise KeyError(old.input["what"])

    with kind_in_place(errand.definition(oldest=1, migrate=migrate)):
        task = start(conversation)
        Task.objects.filter(pk=task.pk).update(version=1, input='{"what":"old"}')
        work()
        task.refresh_from_db()
        assert task.status == TaskStatus.PENDING
        assert task.blocked.startswith("Version 1 could not be brought up to 2")
    with (
        kind_in_place(
            errand.definition(
                oldest=1,
                migrate=lambda version, old: Checkpoint(phase="first", facts={}, input={"given": old.input["what"]}),
            )
        ),
        moved(timedelta(minutes=2)),
    ):
        work()
    task.refresh_from_db()
    assert (task.outcome, task.blocked) == (TaskOutcome.COMPLETED, "")


def test_an_older_version_without_a_migration_is_blocked(errand: Errand, conversation: Conversation) -> None:
    task = start(conversation)
    Task.objects.filter(pk=task.pk).update(version=1)
    work()
    mark_blocked()
    task.refresh_from_db()
    assert task.blocked == "No worker here runs version 1 of errand; it runs version 2."


def test_a_wake_that_comes_while_one_is_looked_at_stays(errand: Errand, conversation: Conversation) -> None:
    """L11: nobody may miss it."""
    errand.waits_for = "answer:1"
    start(conversation)
    work()
    wake("answer:1")
    second = errand.second

    def woken_meanwhile(run: Run) -> None:
        wake("answer:1")
        second(run)

    with kind_in_place(errand.definition(phases={"first": errand.first, "second": woken_meanwhile})):
        run_subject("answer:1")
        run_due()
    assert Wake.objects.filter(subject="answer:1").count() == 1


def test_a_long_phase_keeps_its_lease_and_hears_of_its_abort(conversation: Conversation) -> None:
    """L9: what the lease thread of a worker does each second."""
    errand, heard = Errand(), []

    def long(run: Run) -> None:
        with moved(timedelta(seconds=10)):
            look_at_held(renew=True)
        held = Task.objects.get(pk=run.task).lease_until
        assert held is not None
        assert held > now() + LEASE
        abort_task(who=None, task=run.task)
        look_at_held(renew=False)
        heard.append(run.aborting.is_set())
        errand.first(run)

    with kind_in_place(errand.definition(phases={"first": long, "second": errand.second})):
        task = start(conversation)
        work()
    task.refresh_from_db()
    assert (heard, task.outcome) == ([True], TaskOutcome.ABORTED)


def test_a_hint_that_others_served_already_looks_no_further(errand: Errand, conversation: Conversation) -> None:
    """Hundreds of them may lie before the hint of a finish; what is due without a hint of its own is found by who ran one."""
    done, other = start(conversation), start(conversation)
    run_nudged(tasks=[done.pk], subjects=[])
    other.refresh_from_db()
    assert other.status == TaskStatus.TERMINAL
    with CaptureQueriesContext(connection) as statements:
        run_nudged(tasks=[done.pk], subjects=[])
    assert len(statements) <= 3


def test_hints_of_finishes_go_before_those_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = mock.Mock()
    monkeypatch.setattr(nudges.work, "apply_async", sent)
    nudges.forget_failure()
    nudges.send_nudge([1], [])
    nudges.send_nudge([], ["conversation:1"])
    task, finish = (call.kwargs["priority"] for call in sent.call_args_list)
    assert finish < task

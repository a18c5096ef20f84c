"""What a phase is handed: its task, and the commit in which its effect and the next checkpoint are written together (L9)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from console.clock import now
from console.json_text import dumped, one_line
from lineage.actions.ends import end_task, save_tasks, with_live_children
from lineage.actions.locks import lock_all, lock_tasks
from lineage.actions.settling import settle
from lineage.actions.wakes import task_subject, wake_awaited
from lineage.models import Conversation, Root, State, Task, TaskOutcome, TaskStatus
from lineage.tasks.boundaries import pass_boundary
from lineage.tasks.claiming import LEASE
from lineage.tasks.definitions import Definition

WHY_LENGTH = 300


class LeaseLost(Exception):
    """Another worker has this task now, or it ended: nothing of this commit may stand."""


class Aborted(Exception):
    """The task carries the abort mark: its abort function runs instead."""


@dataclass(kw_only=True)
class Run:
    """One claimed task on its way through one phase. `aborting` is set soon after someone aborts it: long phases look."""

    definition: Definition
    lease: UUID
    task: int
    conversation: int
    parent: int | None
    kind: str
    phase: str
    input: dict[str, Any]
    facts: dict[str, Any]
    attempts: int
    undoing: bool = False
    committed: bool = False
    goes_on: bool = False  # the commit led to a next phase, which this worker runs at once
    aborting: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def commit(self, *, root: int | None = None, conversations: Sequence[int] = ()) -> Iterator[Commit]:
        """The transaction that ends this phase. It locks the root, these conversations and the task's own one in order
        (R5), then the task, and checks the lease. Exactly one transition is chosen inside."""
        with commit_together([self], root=root, conversations=conversations) as together:
            if self in together.aborted:
                raise Aborted
            if self not in together.runs:
                raise LeaseLost
            yield together.of(self)


@contextmanager
def commit_together(
    runs: Sequence[Run], *, root: int | None = None, conversations: Sequence[int] = ()
) -> Iterator[Together]:
    """One transaction for many tasks of one phase. Those that lost their lease or are aborted are left out of `runs`."""
    with transaction.atomic():
        own = [run.conversation for run in runs]
        held_root, rows = lock_all(root=root, conversations=[*own, *conversations])
        tasks = lock_tasks([*(run.task for run in runs), *(run.parent for run in runs if run.parent is not None)])
        together = Together(root=held_root, conversations=rows)
        for run in runs:
            task = tasks[run.task]
            if task.status != TaskStatus.RUNNING or task.lease != run.lease:
                continue
            if task.aborting and not run.undoing:
                together.aborted.append(run)
                continue
            together.runs.append(run)
            together.commits[run.task] = Commit(task=task, run=run, root=held_root, conversations=rows)
        yield together
        together.write()
        for run in runs:
            pass_boundary_of(run, "commit")
    phase = runs[0].phase
    for run in together.runs:
        together.of(run).take_over()
    for run in runs:
        pass_boundary_of(run, "committed", phase)


@dataclass(kw_only=True)
class Together:
    """The open commit of several runs."""

    root: Root | None
    conversations: dict[int, Conversation]
    runs: list[Run] = field(default_factory=list)
    aborted: list[Run] = field(default_factory=list)
    commits: dict[int, Commit] = field(default_factory=dict)

    def of(self, run: Run) -> Commit:
        return self.commits[run.task]

    def write(self) -> None:
        """Write all transitions: those of background tasks in one statement, since no conversation's state hangs on them."""
        parents = with_live_children([commit.task.pk for commit in self.commits.values() if commit.ends])
        alone = [commit for commit in self.commits.values() if not commit.is_plain or commit.task.pk in parents]
        plain = [commit.settled() for commit in self.commits.values() if commit not in alone]
        save_tasks(plain)
        wake_awaited([task_subject(task.pk) for task in plain if task.status == TaskStatus.TERMINAL])
        for commit in alone:
            commit.write()


@dataclass(kw_only=True, eq=False)
class Commit:
    """The open commit of one run: its locked rows, and the one transition that its phase chooses."""

    task: Task
    run: Run
    root: Root | None
    conversations: dict[int, Conversation]
    _chosen: bool = False
    _goes_on: bool = False
    _ends: tuple[TaskOutcome, Any, str] | None = None

    @property
    def conversation(self) -> Conversation:
        """The task's own conversation, locked."""
        return self.conversations[self.run.conversation]

    def go(self, phase: str, facts: dict[str, Any] | None = None) -> None:
        """On to the next phase, at once and by the same worker, which keeps its lease."""
        self._checkpoint(phase, facts)
        self._goes_on = True

    def wait(
        self,
        subject: str,
        *,
        phase: str | None = None,
        facts: dict[str, Any] | None = None,
        shows: State | None = None,
        why: str = "",
    ) -> None:
        """Park until `subject` is woken; the phase then looks again. What it saw was read under the subject's lock (L11)."""
        self._checkpoint(phase or self.run.phase, facts)
        self.task.status, self.task.subject = TaskStatus.WAITING, subject
        self.task.waits_as, self.task.why = (shows or ""), one_line(why, WHY_LENGTH)

    def retry(self, *, after_s: float, why: str, facts: dict[str, Any] | None = None) -> None:
        """The same phase again, later, without counting as a failure."""
        self._checkpoint(self.run.phase, facts)
        self.task.status, self.task.due = TaskStatus.PENDING, now() + timedelta(seconds=after_s)
        self.task.error = why

    def complete(self, result: Any = None) -> None:
        """It is done."""
        self._end(TaskOutcome.COMPLETED, result, "")

    def fail(self, error: str, result: Any = None) -> None:
        """It cannot be done; `error` says why, in words."""
        self._end(TaskOutcome.FAILED, result, error)

    def abandon(self) -> None:
        """It ends as aborted."""
        self._end(TaskOutcome.ABORTED, None, "")

    @property
    def ends(self) -> bool:
        return self._ends is not None

    @property
    def is_plain(self) -> bool:
        """Whether nothing but its own row changes when it goes on or ends."""
        task, definition = self.task, self.run.definition
        return not task.foreground and task.parent_id is None and (self._ends is None or definition.ended is None)

    def settled(self) -> Task:
        """The row as the transition leaves it."""
        if not self._chosen:
            raise AssertionError(f"Phase {self.run.phase} of {self.run.kind} chose no transition.")
        task = self.task
        task.attempts = 0
        if self._goes_on:
            task.attempts, task.lease_until = 1, now() + LEASE
        else:
            task.lease = task.lease_until = None
        if self._ends is not None:
            outcome, result, error = self._ends
            task.status, task.outcome, task.ended = TaskStatus.TERMINAL, outcome, now()
            task.result, task.error, task.subject, task.waits_as, task.why = dumped(result), error, "", "", ""
        return task

    def write(self) -> None:
        """Write the transition of one task, with all that hangs on it; the engine calls this at the end of the transaction."""
        if self._chosen and self._ends is not None:
            outcome, result, error = self._ends
            end_task(task=self.task, conversation=self.conversation, outcome=outcome, result=result, error=error)
            return
        task = self.settled()
        task.save()
        if task.foreground:
            settle(conversation=self.conversation)

    def take_over(self) -> None:
        """After the commit the run is what was committed."""
        run = self.run
        run.committed, run.goes_on = True, self._goes_on
        run.phase, run.facts, run.attempts = self.task.phase, json.loads(self.task.facts), self.task.attempts

    def _checkpoint(self, phase: str, facts: dict[str, Any] | None) -> None:
        self._choose()
        assert phase in self.run.definition.phases, phase
        self.task.phase = phase
        self.task.facts = dumped(self.run.facts if facts is None else facts)

    def _end(self, outcome: TaskOutcome, result: Any, error: str) -> None:
        self._choose()
        self._ends = (outcome, result, error)

    def _choose(self) -> None:
        if self._chosen:
            raise AssertionError(f"Phase {self.run.phase} of {self.run.kind} chose two transitions.")
        self._chosen = True


def run_of(task: Task, definition: Definition, lease: UUID) -> Run:
    """A claimed row as its phase sees it."""
    run = Run(
        definition=definition,
        lease=lease,
        task=task.pk,
        conversation=task.conversation_id,
        parent=task.parent_id,
        kind=task.kind,
        phase=task.phase,
        input=json.loads(task.input),
        facts=json.loads(task.facts),
        attempts=task.attempts,
    )
    if task.aborting:
        run.aborting.set()
    return run


def pass_boundary_of(run: Run, point: str, phase: str | None = None) -> None:
    """End the process here, where a test asks for it."""
    if not run.undoing:
        pass_boundary(run.kind, phase or run.phase, point)

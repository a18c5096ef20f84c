"""Running what was claimed: phase after phase until a task waits, ends, or rests after a failure (L9, L10)."""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from django.db import transaction

from console.clock import now
from console.errors import DomainError
from console.json_text import dumped
from lineage.actions.ends import end_task
from lineage.actions.locks import lock_all, lock_tasks
from lineage.actions.settling import look_again, settle
from lineage.models import Task, TaskOutcome, TaskStatus, Wake
from lineage.tasks.claiming import BATCH, Claim, claim_batch, claim_one, claim_waiting, release_waiting
from lineage.tasks.definitions import Checkpoint, Definition, find_kind
from lineage.tasks.leases import held
from lineage.tasks.nudges import send_nudge
from lineage.tasks.running import Aborted, LeaseLost, Run, pass_boundary_of, run_of

logger = logging.getLogger(__name__)

BLOCKED_PAUSE = timedelta(minutes=1)  # between two tries to bring an old row up to the present version


def run_nudged(*, tasks: Sequence[int], subjects: Sequence[str]) -> None:
    """What a hint names, then whatever else is due. A hint whose tasks others have taken costs little: they look further."""
    for subject in subjects:
        run_subject(subject)
    looking = not tasks
    for task in tasks:
        claim = claim_one(task)
        run_claim(claim)
        looking = looking or bool(claim.tasks)
    if looking:
        run_due()


def run_due() -> int:
    """Run until nothing is due; answers how many tasks were claimed."""
    count = 0
    while True:
        claim = claim_batch()
        if not claim.tasks:
            claim = claim_one()
        if not claim.tasks:
            return count
        count += len(claim.tasks)
        run_claim(claim)


def run_subject(subject: str) -> None:
    """A wake (L11): look at the subject afresh, then run what waits for it, in batches. The wakes that were there before
    are used up at the end, so a worker that is killed meanwhile leaves them to the sweep."""
    wakes = list(Wake.objects.filter(subject=subject).values_list("pk", flat=True))
    look_again(subject)
    for task in release_waiting(subject):
        send_nudge([task], [])
    after = 0
    while True:
        claim = claim_waiting(subject, after=after)
        if claim.tasks:
            run_claim(claim)
            after = claim.tasks[-1].pk
        if len(claim.tasks) < BATCH:
            break
    Wake.objects.filter(pk__in=wakes).delete()


def run_claim(claim: Claim) -> None:
    """Run claimed tasks, those of one kind and phase together where their kind can."""
    runs = [run for task in claim.tasks if (run := _prepared(task, claim)) is not None]
    with held(claim.lease, runs):
        while runs:
            together: dict[tuple[str, str], list[Run]] = {}
            for run in runs:
                together.setdefault((run.kind, run.phase), []).append(run)
            for group in together.values():
                _run_phase(group)
            runs = [run for run in runs if run.goes_on]


def _run_phase(runs: list[Run]) -> None:
    definition, phase = runs[0].definition, runs[0].phase
    batch = definition.batches.get(phase)
    if batch is not None and len(runs) > 1:
        try:
            for run in runs:
                pass_boundary_of(run, "begin")
            batch(runs)
        except Exception:
            logger.exception(
                "A batch of %d tasks %s failed in %s; they run one by one.", len(runs), runs[0].kind, phase
            )
        else:
            for run in runs:
                if not run.committed:
                    _guarded(run, _look_why)
            return
    for run in runs:
        _guarded(run, definition.phases[phase])


def _guarded(run: Run, phase: Callable[[Run], None]) -> None:
    """One phase of one task; whatever it raises becomes a state of the row (STYLE 12)."""
    run.committed = run.goes_on = False
    try:
        pass_boundary_of(run, "begin")
        phase(run)
        if not run.committed:
            raise AssertionError(f"Phase {run.phase} of {run.kind} ended without a commit.")
    except LeaseLost:
        run.goes_on = False
    except Aborted:
        _undo(run)
    except DomainError as error:
        _record_failure(run, error.message, final=True)
    except Exception as error:
        logger.exception("Task %d %s failed in %s.", run.task, run.kind, run.phase)
        _record_failure(run, f"{type(error).__name__}: {error}", final=False)


def _look_why(run: Run) -> None:
    """A batch left this one out: its lease is lost or it is aborted."""
    with run.commit() as commit:
        commit.retry(after_s=0, why="left out of a batch")


def _undo(run: Run) -> None:
    run.goes_on, run.undoing = False, True
    try:
        if run.definition.abort is not None:
            run.definition.abort(run)
        else:
            with run.commit() as commit:
                commit.abandon()
    except LeaseLost:
        return
    except Exception as error:
        logger.exception("Task %d %s could not be aborted.", run.task, run.kind)
        _record_failure(run, f"{type(error).__name__}: {error}", final=False)


def _record_failure(run: Run, error: str, *, final: bool) -> None:
    """Rest and try again, or end as failed once the tries are used up. Does nothing when another worker has the task."""
    run.goes_on = False
    with transaction.atomic():
        _, rows = lock_all(conversations=[run.conversation])
        found = lock_tasks([run.task, *([run.parent] if run.parent is not None else [])])
        task = found[run.task]
        if task.status != TaskStatus.RUNNING or task.lease != run.lease:
            return
        if final or run.attempts >= run.definition.tries:
            end_task(task=task, conversation=rows[run.conversation], outcome=TaskOutcome.FAILED, error=error)
            return
        task.status, task.lease, task.lease_until = TaskStatus.PENDING, None, None
        task.error, task.due = error, now() + timedelta(seconds=run.definition.pause_after(run.attempts))
        task.save()


def _prepared(task: Task, claim: Claim) -> Run | None:
    """The run of a claimed row: brought up to the present version, and refused when its workers died too often."""
    definition = find_kind(task.kind)
    assert definition is not None  # only known kinds are claimed
    if task.version < definition.version and not _brought_up(task, definition, claim):
        return None
    run = run_of(task, definition, claim.lease)
    if task.waits_as:
        _show_running(task)
    if task.attempts > definition.tries:
        _record_failure(run, f"Its worker ended {definition.tries} times in phase {task.phase}.", final=True)
        return None
    return run


def _show_running(task: Task) -> None:
    """What it waited for has come, so its conversation no longer shows that it waits (C2)."""
    with transaction.atomic():
        _, rows = lock_all(conversations=[task.conversation_id])
        Task.objects.filter(pk=task.pk).update(waits_as="", why="")
        settle(conversation=rows[task.conversation_id])


def _brought_up(task: Task, definition: Definition, claim: Claim) -> bool:
    """Migrate an older row; one that cannot be is blocked, visible, and looked at again later (L9)."""
    mine = Task.objects.filter(pk=task.pk, lease=claim.lease)
    run = run_of(task, definition, claim.lease)
    assert definition.migrate is not None  # `versions` lets no older row in without it
    try:
        new = definition.migrate(task.version, Checkpoint(phase=task.phase, facts=run.facts, input=run.input))
        assert new.phase in definition.phases, new.phase
    except Exception as error:
        logger.exception("Task %d %s of version %d could not be migrated.", task.pk, task.kind, task.version)
        mine.update(
            blocked=f"Version {task.version} could not be brought up to {definition.version}: {error}"[:300],
            status=TaskStatus.PENDING,
            lease=None,
            lease_until=None,
            attempts=0,
            due=now() + BLOCKED_PAUSE,
        )
        return False
    task.version, task.phase = definition.version, new.phase
    task.facts, task.input = dumped(new.facts), dumped(new.input)
    return bool(mine.update(version=task.version, phase=task.phase, facts=task.facts, input=task.input))

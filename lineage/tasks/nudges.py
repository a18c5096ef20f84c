"""Hints to workers through Celery (L9). A lost one costs a second: the sweep finds what waits."""

import logging
import time
from collections.abc import Sequence
from functools import partial

import redis
from celery import shared_task
from celery.signals import worker_ready
from django.db import transaction
from kombu.exceptions import KombuError

logger = logging.getLogger(__name__)

PAUSE_S = 5.0  # after a failure nobody tries for so long; the sweep goes on trying
EXPIRES_S = 10.0  # a hint that no worker took by then says nothing that the sweep has not said again

# A finish that many wait for is not to stand behind the hints of all their tasks. 0 goes first with this broker.
FINISHES, TASKS = 0, 6

_paused_until = 0.0


@shared_task(name="lineage.work", ignore_result=True)  # type: ignore[untyped-decorator]
def work(tasks: list[int], subjects: list[str]) -> None:
    """Run these tasks and what waits for these subjects, then whatever else is due."""
    from lineage.tasks.working import run_nudged

    run_nudged(tasks=tasks, subjects=subjects)


@worker_ready.connect  # type: ignore[untyped-decorator]
def renew_leases(**_: object) -> None:
    """A worker keeps the leases of what it runs."""
    from lineage.tasks.leases import start_renewing

    start_renewing()


def nudge_on_commit(*, tasks: Sequence[int] = (), subjects: Sequence[str] = ()) -> None:
    """Tell a worker after this transaction's commit. Never an error of the writer."""
    transaction.on_commit(partial(send_nudge, list(tasks), list(subjects)), robust=True)


def send_nudge(tasks: list[int], subjects: list[str]) -> bool:
    """Tell a worker now; whether the hint was handed over."""
    global _paused_until
    if time.monotonic() < _paused_until:
        return False
    try:
        priority = FINISHES if subjects else TASKS
        work.apply_async(args=[tasks, subjects], expires=EXPIRES_S, retry=False, priority=priority)
    except (redis.RedisError, KombuError, OSError) as error:
        _paused_until = time.monotonic() + PAUSE_S
        logger.warning("No hint could be sent to the workers (%s); the sweep finds what waits.", error)
        return False
    return True


def forget_failure() -> None:
    """Try again at once: for tests, and for whoever knows that the way is free."""
    global _paused_until
    _paused_until = 0.0

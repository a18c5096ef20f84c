"""Keeping leases of long phases alive, and telling them that somebody aborted them. Only workers do; short phases never need it."""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection

from console.clock import now
from lineage.models import Task
from lineage.tasks.claiming import LEASE
from lineage.tasks.running import Run

logger = logging.getLogger(__name__)

LOOK_S = 1.0  # how soon a long phase learns that it is aborted
RENEW_EACH = 5  # looks between two renewals: a third of the lease

_held: dict[UUID, dict[int, Run]] = {}
_lock = threading.Lock()
_something_held = threading.Event()


@contextmanager
def held(lease: UUID, runs: Sequence[Run]) -> Iterator[None]:
    """These runs are under way in this process."""
    with _lock:
        _held[lease] = {run.task: run for run in runs}
        _something_held.set()
    try:
        yield
    finally:
        with _lock:
            _held.pop(lease, None)
            if not _held:
                _something_held.clear()


def start_renewing() -> threading.Thread:
    """The thread of a worker process that renews what is held."""
    thread = threading.Thread(target=_renew_forever, name="leases", daemon=True)
    thread.start()
    return thread


def _renew_forever() -> None:
    looks = 0
    while True:
        _something_held.wait()
        threading.Event().wait(LOOK_S)
        looks += 1
        try:
            look_at_held(renew=looks % RENEW_EACH == 0)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("Leases could not be renewed (%s); trying again.", error)
            connection.close()


def look_at_held(*, renew: bool) -> None:
    """Pass abort marks on, and renew the leases when asked to."""
    with _lock:
        runs = {task: run for found in _held.values() for task, run in found.items()}
        leases = list(_held)
    if not runs:
        return
    for task in Task.objects.filter(pk__in=runs, aborting=True).values_list("pk", flat=True):
        runs[task].aborting.set()
    if renew:
        Task.objects.filter(lease__in=leases, status="running").update(lease_until=now() + LEASE)

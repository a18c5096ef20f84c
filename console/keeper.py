"""Periodic work that one process of all machines does at a time: the sweep of tasks (L9), the board (R9).

An app registers its own in a module `keepers`, which `manage.py keeper` finds:

    @keep("sweep", every=1.0)
    def sweep_tasks() -> bool: ...

The function returns True when there is more to do at once. It runs under an advisory lock of its own, on a
connection that its thread keeps; a keeper that dies loses the lock with its connection, and another goes on.
"""

import hashlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, InterfaceError, connection

logger = logging.getLogger(__name__)

AFTER_FAILURE = 2.0  # seconds of rest after a failure, so that a lasting one does not fill the log


@dataclass(frozen=True, kw_only=True)
class Keeper:
    """One kind of periodic work: `every` is in seconds, `work` says whether there is more to do at once."""

    name: str
    every: float
    work: Callable[[], bool]

    @property
    def lock(self) -> int:
        """Its advisory lock: 63 bits of its name."""
        return int.from_bytes(hashlib.sha256(f"keeper:{self.name}".encode()).digest()[:8]) >> 1


keepers: dict[str, Keeper] = {}


def keep(name: str, *, every: float) -> Callable[[Callable[[], bool]], Callable[[], bool]]:
    """Register a function as the keeper `name`."""

    def register(work: Callable[[], bool]) -> Callable[[], bool]:
        keepers[name] = Keeper(name=name, every=every, work=work)
        return work

    return register


def keep_until(stopped: threading.Event) -> None:
    """Run every registered keeper in a thread of its own, so that a slow one holds up no other."""
    threads = [
        threading.Thread(target=run_keeper, args=(keeper, stopped), name=keeper.name, daemon=True)
        for keeper in keepers.values()
    ]
    for thread in threads:
        thread.start()
    stopped.wait()
    for thread in threads:
        thread.join()


def run_keeper(keeper: Keeper, stopped: threading.Event) -> None:
    """Work whenever this process holds the lock; try for it otherwise. A failure is logged and tried again."""
    locked: Any = None  # the connection that holds the lock
    try:
        while not stopped.is_set():
            try:
                if locked is None or connection.connection is not locked:
                    locked = _lock(keeper)
                more = keeper.work() if locked is not None else False
                rest = 0.0 if more else keeper.every
            except Exception as error:
                _log_failure(keeper, error)
                connection.close()
                locked, rest = None, AFTER_FAILURE
            stopped.wait(rest)
    finally:
        connection.close()


def _lock(keeper: Keeper) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [keeper.lock])
        return connection.connection if cursor.fetchone()[0] else None


def _log_failure(keeper: Keeper, error: Exception) -> None:
    if isinstance(error, DatabaseError | InterfaceError):  # most likely it restarts; the trace would tell nothing
        logger.warning("Keeper %s: the database does not answer (%s); trying again.", keeper.name, error)
    else:
        logger.exception("Keeper %s failed; trying again.", keeper.name)

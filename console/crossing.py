"""The one crossing from asynchronous to synchronous code, with its own threads (R11).

Channels' default runs every consumer on one thread, and asyncio's default executor is shared with name resolution.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from django.conf import settings
from django.db import OperationalError, close_old_connections
from psycopg_pool import PoolTimeout

from console.errors import DomainError

logger = logging.getLogger(__name__)

# A crossing holds a connection nearly all the time, so more threads than connections would only wait for one another.
# Half of the pool stays for HTTP requests, which have threads of their own.
THREADS = max(2, settings.DATABASE_POOL // 2) if settings.DATABASE_POOL else 4
LONGEST_QUEUE = 5000  # crossings that wait: a second's work; more would be answered when nobody asks any more

_executor = ThreadPoolExecutor(THREADS, thread_name_prefix="crossing")
_waiting = 0


async def crossed[**P, R](function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run synchronous code on a thread of its own and give its connection back afterwards.

    Refusal: `busy` (503), when too many wait or the pool of connections stays empty.
    """
    global _waiting
    if _waiting >= LONGEST_QUEUE:
        raise busy()
    context = contextvars.copy_context()
    _waiting += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(
            _executor, partial(context.run, _run, partial(function, *args, **kwargs))
        )
    finally:
        _waiting -= 1


def busy() -> DomainError:
    """The refusal of everything that found no room."""
    return DomainError("busy", "The console has too much to do at the moment. Try again in a few seconds.", status=503)


def _run[R](function: Callable[[], R]) -> R:
    try:
        return function()
    except OperationalError as error:
        if isinstance(error.__cause__, PoolTimeout):
            raise busy() from error
        raise
    finally:
        close_old_connections()

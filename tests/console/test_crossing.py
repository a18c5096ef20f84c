"""The one crossing from asynchronous to synchronous code (R11)."""

import asyncio
import threading
from contextvars import ContextVar

import pytest
from django.db import OperationalError, connection
from psycopg_pool import PoolTimeout

from console import crossing
from console.crossing import THREADS, crossed
from console.errors import DomainError

ASKED = ContextVar("ASKED", default="nobody")


async def test_many_cross_at_the_same_time() -> None:
    together = threading.Barrier(THREADS)
    places = await asyncio.gather(*(crossed(together.wait, 10) for _ in range(THREADS)))
    assert sorted(places) == list(range(THREADS))


async def test_context_and_arguments_go_along_and_errors_come_back() -> None:
    ASKED.set("mira")

    def ask(name: str, *, mark: str) -> str:
        if not mark:
            raise DomainError("no_mark", "A mark is needed.")
        return f"{ASKED.get()} {name}{mark}"

    assert await crossed(ask, "who", mark="?") == "mira who?"
    with pytest.raises(DomainError, match="A mark is needed"):
        await crossed(ask, "who", mark="")


@pytest.mark.django_db(transaction=True)
async def test_no_thread_keeps_a_connection() -> None:
    def use() -> object:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return connection

    used = await crossed(use)
    assert used.connection is None  # type: ignore[attr-defined]


async def test_a_full_pool_is_a_503_with_a_sentence() -> None:
    def wait_for_a_connection() -> None:
        raise OperationalError("couldn't get a connection") from PoolTimeout("couldn't get a connection")

    with pytest.raises(DomainError, match="too much to do") as refusal:
        await crossed(wait_for_a_connection)
    assert (refusal.value.code, refusal.value.status) == ("busy", 503)


async def test_a_queue_that_is_too_long_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossing, "LONGEST_QUEUE", 2)
    gate = threading.Event()
    waiting = [asyncio.create_task(crossed(gate.wait, 10)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(DomainError, match="too much to do"):
        await crossed(int)
    gate.set()
    assert await asyncio.gather(*waiting) == [True, True]
    assert await crossed(int) == 0

"""The nudge: it reaches a worker over Valkey's unix socket, and a dead Valkey does not hold up who gives it."""

import queue
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from celery.contrib.testing.worker import start_worker
from kombu.exceptions import OperationalError

from console.celery import app, broker_url
from lineage.tasks.nudges import work


@pytest.mark.parametrize(
    ("url", "broker"),
    [
        ("unix:///srv/a%20b/valkey.sock", "redis+socket:///srv/a%20b/valkey.sock"),
        ("redis://:secret@valkey:6379/3", "redis://:secret@valkey:6379/3"),
        ("rediss://valkey:6379", "rediss://valkey:6379"),
    ],
)
def test_the_broker_is_the_fan_outs_server(url: str, broker: str) -> None:
    assert broker_url(url) == broker


def test_shared_tasks_belong_to_it_in_every_thread() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: work.app).result() is app


def test_a_nudge_reaches_a_worker_of_threads() -> None:
    nudged: queue.Queue[int] = queue.Queue()

    @app.task(name="tests.nudge")  # type: ignore[untyped-decorator]
    def nudge(task: int) -> None:
        nudged.put(task)

    with start_worker(app, pool="threads", concurrency=2, perform_ping_check=False, shutdown_timeout=30):
        began = time.monotonic()
        nudge.delay(17)
        assert nudged.get(timeout=30) == 17
    assert time.monotonic() - began < 30
    app.tasks.pop("tests.nudge")


def test_a_dead_valkey_does_not_hold_up_a_writer() -> None:
    """R2, L9: the sweep brings back what was lost."""
    with app.connection_for_write("redis+socket:///no/such/socket") as connection:
        began = time.monotonic()
        with pytest.raises(OperationalError):
            app.send_task("tests.nudge", connection=connection)
        assert time.monotonic() - began < 30  # without bounds it tries for ever

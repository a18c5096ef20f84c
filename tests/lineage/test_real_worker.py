"""L9, L10 through Celery and Valkey as they run: a hint brings a worker, and what a killed one left is finished by the next."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection, transaction
from kombu import pools

from console.access import Who
from console.celery import app, broker_url
from lineage.actions.branches import start_branch
from lineage.actions.landings import NewLanding, record_landing
from lineage.actions.notify import request_notify
from lineage.models import Conversation, Entry, MemoryProposal, Note, Root, Task, TaskStatus, Wake
from lineage.tasks import nudges
from lineage.tasks.sweeping import sweep_tasks
from tests.console.live.conftest import Valkey, running_valkey, used
from tests.factories import make_person, make_root, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]  # two workers start

CHECKOUT = Path(__file__).resolve().parents[2]
WORKER = (
    "-m celery --app console.celery worker --pool threads --concurrency 2 --without-gossip --without-mingle "
    "--without-heartbeat --loglevel ERROR"
)
PATIENCE_S = 60.0  # a machine that is busy with other tests


@contextmanager
def worker(exit_at: str = "", redis_url: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A Celery worker as `up` starts it, on the test's database; killed at the end."""
    found = connection.settings_dict
    place = f"postgresql://{found['USER']}@{quote(str(found['HOST']), safe='')}/{found['NAME']}"
    process = subprocess.Popen(
        [sys.executable, *WORKER.split()],
        cwd=CHECKOUT,
        env={
            **os.environ,
            "DATABASE_URL": place,
            "DATABASE_POOL": "4",
            "CONSOLE_DATA": str(settings.DATA_DIR),
            "CONSOLE_EXIT_AT": exit_at,
            **({"REDIS_URL": redis_url} if redis_url else {}),
        },
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(is_there: Callable[[], object], *, sweeping: bool = False) -> None:
    """Ask the database until it is there; with `sweeping` the keeper's part is done beside."""
    end, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not is_there():
        assert time.monotonic() < end
        if sweeping:
            sweep_tasks()
        pause.wait(0.05)


@pytest.fixture
def mira() -> Who:
    return make_person()


@pytest.fixture
def root(mira: Who) -> Root:
    nudges.forget_failure()
    return make_root(mira)


def test_a_commit_brings_a_worker(mira: Who, root: Root) -> None:
    with worker():
        number = start_branch(who=mira, source=root.pk, prompt="Go.")
        until(lambda: Entry.objects.filter(conversation=number, kind="user").exists(), sweeping=True)
        say(mira, number, "Go on.", "Half.", end=False)
        caller = start_branch(who=mira, source=root.pk, prompt="Wait.")
        request_notify(who=mira, caller=caller, target=number, wake=False)
        until(lambda: Task.objects.filter(kind="notify", status=TaskStatus.WAITING).exists())
        say(mira, number, "On.", "Done.")
        until(lambda: Note.objects.filter(submission__conversation=caller).exists())
    assert Note.objects.get(submission__conversation=caller).text == "Done."


def test_what_a_killed_worker_left_is_finished_by_the_next(mira: Who, root: Root) -> None:
    """It dies with the prompt written and not committed; the hint is gone with it, the sweep hints again."""
    with worker(exit_at="prompt:deliver:commit") as first:
        number = start_branch(who=mira, source=root.pk, prompt="Go.")
        until(lambda: first.poll() is not None, sweeping=True)
    assert not Entry.objects.filter(conversation=number, kind="user").exists()
    Task.objects.filter(status=TaskStatus.RUNNING).update(lease_until=Conversation.objects.get(pk=number).created)
    with worker():
        until(lambda: Entry.objects.filter(conversation=number, kind="user").exists(), sweeping=True)
    assert Entry.objects.filter(conversation=number, kind="user").count() == 1


@contextmanager
def hinting_over(valkey: Valkey) -> Iterator[None]:
    """This process gives its hints to that server."""

    def address(url: str) -> None:
        app.conf.broker_url = url
        pools.reset()  # type: ignore[no-untyped-call]
        app._pool = app.amqp._producer_pool = None
        nudges.forget_failure()

    before = app.conf.broker_url
    address(broker_url(valkey.url))
    try:
        yield
    finally:
        address(before)


def test_valkey_is_killed_between_the_commit_and_the_hint(
    mira: Who, root: Root, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The writers see no error, the worker lives on, and once Valkey is back the sweep brings each effect, once."""
    with running_valkey() as valkey, used(valkey, settings), hinting_over(valkey), worker(redis_url=valkey.url) as one:
        target = start_branch(who=mira, source=root.pk, prompt="Go.")
        caller = start_branch(who=mira, source=root.pk, prompt="Wait.")
        until(lambda: Entry.objects.filter(conversation=caller, kind="user").exists(), sweeping=True)
        say(mira, target, "Go on.", "Half.", end=False)
        request_notify(who=mira, caller=caller, target=target, wake=False)
        until(lambda: Task.objects.filter(kind="notify", status=TaskStatus.WAITING).exists(), sweeping=True)
        killed: list[bool] = []

        def kill() -> None:
            valkey.kill()
            killed.append(Task.objects.filter(kind="memorize").exists())  # what this tells of is committed

        with transaction.atomic():
            transaction.on_commit(kill)  # before the hints of what is done here
            say(mira, target, "On.", "Done.")
            record_landing(who=mira, conversation=target, new=LANDING)
            late = start_branch(who=mira, source=root.pk, prompt="Late.")
        assert killed == [True]
        assert "No hint could be sent to the workers" in caplog.text
        valkey.start()
        nudges.forget_failure()
        until(lambda: not Task.objects.exclude(status=TaskStatus.TERMINAL).exists(), sweeping=True)
        assert one.poll() is None
    assert Note.objects.get(submission__conversation=caller).text == "Done."
    assert Entry.objects.filter(conversation=late, kind="user").count() == 1
    assert MemoryProposal.objects.count() == 1
    assert not Wake.objects.exists()


LANDING = NewLanding(
    at=1, sha="0" * 40, base="1" * 40, target="main", commits=[], paths=["a.py"], divergence="", title="Rounding"
)

"""L9, L10 through Celery and Valkey as they run: a hint brings a worker, and what a killed one left is finished by the next."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from console.access import Who
from lineage.actions.branches import start_branch
from lineage.actions.notify import request_notify
from lineage.models import Conversation, Entry, Note, Root, Task, TaskStatus
from lineage.tasks import nudges
from lineage.tasks.sweeping import sweep_tasks
from tests.factories import make_person, make_root, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]  # two workers start

CHECKOUT = Path(__file__).resolve().parents[2]
WORKER = (
    "-m celery --app console.celery worker --pool threads --concurrency 2 --without-gossip --without-mingle "
    "--without-heartbeat --loglevel ERROR"
)
PATIENCE_S = 60.0  # a machine that is busy with other tests


@contextmanager
def worker(exit_at: str = "") -> Iterator[subprocess.Popen[bytes]]:
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

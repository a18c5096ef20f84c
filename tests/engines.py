"""The pytest plugin that gives a test run its own PostgreSQL and Valkey, in a folder that is gone afterwards.

They start in the background while tests are collected, once for all workers of pytest-xdist, and end with the run
also when it is killed. `conftest.py` at the root loads this before Django reads its settings.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import django
import pytest

from console.embedded.throwaway import make_folder

CHECKOUT = Path(__file__).resolve().parent.parent
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ

_engines: subprocess.Popen[str] | None = None


def _start() -> subprocess.Popen[str]:
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY"):
        os.environ.pop(name, None)  # a test run never touches engines that somebody uses
    os.environ["CONSOLE_DATA"] = str(make_folder())
    return subprocess.Popen(
        [sys.executable, "-m", "console.embedded.throwaway", os.environ["CONSOLE_DATA"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
    )


if not IS_WORKER:  # workers inherit the environment of the process that started them
    _engines = _start()
os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"
django.setup()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Tests begin when the engines answer."""
    if _engines is not None and not session.config.option.collectonly:
        assert _engines.stdout is not None
        said = _engines.stdout.readline().strip()
        if said != "ready":
            pytest.exit(f"The engines for the tests did not start: {said}", returncode=1)
    return (yield)


def pytest_unconfigure() -> None:
    """Stop the engines and wait until their folder is gone."""
    if _engines is not None:
        _engines.communicate()

"""A real `manage.py up` for tests: `running_console` is one for the whole run, `Console` starts others.

Import the fixture where it is used:

    from tests.console.up import running_console as running_console
"""

import os
import queue
import re
import select
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from console.data import CHECKOUT
from console.embedded.children import start_bound

WAIT = 150.0  # seconds for what takes two on an idle machine and thirty on a crowded one
NAMES = {
    "postgres": "/postgres -D",
    "valkey": "valkey-server",
    "web": "console.server",
    "worker": "celery",
    "keeper": "manage.py keeper",
    "watcher": "manage.py watch",
}


class Console:
    """A running `up`. Its output is read by a thread, line by line, so that tests wait for lines instead of sleeping."""

    def __init__(self, data: Path, *words: str, start: list[str] | None = None) -> None:
        self.data = data
        command = start or [sys.executable, str(CHECKOUT / "manage.py")]
        self.process = start_bound(  # ends with the test run, also when that is killed
            [*command, "up", "--port", "0", "--data", str(data), *words],
            stdout=subprocess.PIPE,
            cwd=CHECKOUT,
            env=plain_environment(),
        )
        self.lines: list[str] = []
        self._new: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.base_url = self.wait_for(r"^Console ready: (http\S+/)$")[1]
        self._below: list[int] = []
        self._watch_below()

    def _watch_below(self) -> None:
        for descriptor in self._below:
            os.close(descriptor)
        self._below = open_pids(self.descendants())

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self._new.put(line.decode().rstrip("\n"))
        self._new.put(None)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first line, from those not waited for yet, that the pattern is found in."""
        deadline = time.monotonic() + WAIT
        while True:
            line = self._new.get(timeout=max(0.0, deadline - time.monotonic()))
            assert line is not None, f"`up` ended before {pattern!r}: {self.lines}"
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found

    def pids(self) -> dict[str, int]:
        """The children by name; with several of a kind, one of them."""
        return {name: pid for pid, name in self._named().items()}

    def names(self) -> list[str]:
        """The names of all children that run now, sorted."""
        return sorted(self._named().values())

    def _named(self) -> dict[int, str]:
        listed = {pid: _words(pid) for pid in _children(self.supervisor())}
        return {pid: name for name, mark in NAMES.items() for pid, words in listed.items() if mark in words}

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Kill that child and wait until `up` has said so; answers the process number it had."""
        pid = self.pids()[name]
        os.kill(pid, number)
        self.wait_for(rf"^{name}(-\d+)? (was killed|ended)")
        return pid

    def kill_and_return(self, name: str) -> int:
        """Kill that child and wait until another of its name runs; answers the new one's process number."""
        before = self.kill(name)
        wait_until(lambda: self.pids().get(name) not in {None, before}, f"another {name}")
        return self.pids()[name]

    def wait_until_ready(self) -> None:
        """Until /readyz answers 200."""
        wait_until(lambda: self.status("readyz") == 200, "/readyz")

    def status(self, path: str) -> int:
        """The HTTP status of a path; 0 when nothing answers."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(self.base_url + path, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command beside it."""
        return manage(self.data, *words)

    def token(self, name: str = "wren", *words: str) -> str:
        """A bearer token of a new root, as `manage.py token` prints it; `words` are more of its options."""
        made = self.manage("token", name, *(words or ("--root", "new")))
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def supervisor(self) -> int:
        """The process of `up` itself: the one that was started, or a child of the starter."""
        found = [pid for pid in [self.process.pid, *_children(self.process.pid)] if " up " in _words(pid)]
        return found[-1]

    def descendants(self) -> set[int]:
        """Every process below it now."""
        found: set[int] = set()
        fresh = {self.process.pid}
        while fresh:
            fresh = {child for pid in fresh for child in _children(pid)} - found
            found |= fresh
        return found

    def end(self, number: signal.Signals) -> int:
        """Send the signal and wait until it and everything below it has ended; answers its exit code."""
        self._watch_below()
        self.process.send_signal(number)
        return self.wait_for_end()

    def wait_for_end(self) -> int:
        """Wait until it and everything that was below it has ended; answers its exit code."""
        code = self.process.wait(WAIT)
        wait_for_end(self._below)
        self._below = []
        self._reader.join(WAIT)
        assert processes_naming(self.data) == []
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            assert self.end(signal.SIGTERM) == 0


@pytest.fixture(scope="session")
def running_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """One console for the tests of a run that do not end it. They may kill its children: it starts them again."""
    with Console(tmp_path_factory.mktemp("console")) as console:
        yield console


def plain_environment(**extra: str) -> dict[str, str]:
    """The environment without what names this run's own engines."""
    own = {"CONSOLE_DATA", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DATABASE_POOL", "ALLOWED_HOSTS"}
    return {name: value for name, value in os.environ.items() if name not in own} | extra


def manage(data: Path, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `manage.py` on that data directory to its end."""
    return subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), *words, "--data", str(data)],
        cwd=CHECKOUT,
        env=plain_environment(**extra),
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )


def wait_until(holds: object, what: str) -> None:
    """Ask again and again, for other processes' states that announce themselves to nobody."""
    assert callable(holds)
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline, f"waited {WAIT:.0f} s for {what}"
        time.sleep(0.02)


def open_pids(pids: set[int]) -> list[int]:
    """Descriptors that become readable when these processes end."""
    opened = []
    for pid in pids:
        try:
            opened.append(os.pidfd_open(pid))
        except ProcessLookupError:
            continue
    return opened


def wait_for_end(descriptors: list[int]) -> None:
    """Wait until all of them have ended."""
    deadline = time.monotonic() + WAIT
    for descriptor in descriptors:
        ended = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]
        os.close(descriptor)
        assert ended, "a process was left behind"


def processes_naming(path: Path) -> list[str]:
    """The command lines of processes that name this path."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [words for pid in pids if str(path) in (words := _words(pid))]


def _children(pid: int) -> list[int]:
    try:
        tasks = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for task in tasks for word in task.split()]


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""

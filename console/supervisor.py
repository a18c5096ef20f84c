"""Keeping the children of `up` running: who crashed is started again, and whoever ends, all end.

Children are started and restarted from the main thread only: the kernel tells them of the end of the thread that
forked them (DESIGN 12). What they are is `console.processes`' to say.
"""

import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from console.embedded.children import Child, last_lines, start_child, stop_children, turn_log

FIRST_DELAY = 0.2  # seconds before a crashed child is started again; doubled for each crash in a row
LONGEST_DELAY = 30.0
SOUND_AFTER = 30.0  # a child that ran so long had not crashed "in a row"
LOG_LOOK = 60.0  # seconds between two looks at the length of the logs


class Stop(BaseException):
    """A signal asked to stop. Not an Exception: nothing on the way may take it for a failure and go on."""


@dataclass(eq=False)
class Watched:
    """A child and how it fares."""

    child: Child
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)
    crashes: int = 0
    due: float | None = None  # when it is started again; None while it runs


class Supervisor:
    """Holds the running children. `say` gets a sentence whenever one crashed, `ended` its process number."""

    def __init__(self, say: Callable[[str], None], ended: Callable[[int], None] = lambda pid: None) -> None:
        self._say, self._ended = say, ended
        self._watched: dict[str, Watched] = {}
        self._stopping = False
        self._next_log_look = time.monotonic() + LOG_LOOK
        self._wake, wake_end = socket.socketpair()
        self._wake_end = wake_end
        self._starter = _starter_descriptor()
        for end in (self._wake, wake_end):
            end.setblocking(False)
        # A signal that comes just before the wait still ends it: it leaves a byte.
        signal.set_wakeup_fd(wake_end.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._asked_to_stop)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
            signal.signal(signal.SIGHUP, self._asked_to_stop)

    def start(self, child: Child) -> None:
        """Start a child and keep it running."""
        self.adopt(child, start_child(child))

    def adopt(self, child: Child, process: subprocess.Popen[bytes]) -> None:
        """Keep a child running that was started already."""
        self._watched[child.name] = Watched(child, process)

    def pids(self) -> dict[str, int]:
        """Who runs now, by name."""
        return {name: watched.process.pid for name, watched in self._watched.items() if watched.due is None}

    def crashes(self) -> int:
        """How often children ended that were not asked to, in a row."""
        return max((watched.crashes for watched in self._watched.values()), default=0)

    def watch(self, seconds: float) -> None:
        """Look after the children for so long, or until something happened. Raises Stop."""
        until = time.monotonic() + seconds
        dues = [watched.due for watched in self._watched.values() if watched.due is not None]
        wait = max(0.0, min([until, self._next_log_look, *dues]) - time.monotonic())
        readable = select.select([self._wake.fileno(), *self._starter], [], [], wait)[0]
        if self._wake.fileno() in readable:
            self._wake.recv(4096)
        elif readable:
            raise Stop
        moment = time.monotonic()
        for watched in self._watched.values():
            if watched.due is None:
                self._look_at(watched, moment)
            if watched.due is not None and watched.due <= moment:
                self._start_again(watched, moment)
        if moment >= self._next_log_look:
            self._next_log_look = moment + LOG_LOOK
            for watched in self._watched.values():
                turn_log(watched.child.log)

    def stop(self, *, first: Callable[[str], bool]) -> None:
        """Stop those whose name `first` picks, then the rest: nobody loses the database under its hands."""
        self._stopping = True
        for picked in (True, False):
            group = [watched for name, watched in self._watched.items() if first(name) is picked]
            stop_children({watched.child: watched.process for watched in group})
        self._watched.clear()
        signal.set_wakeup_fd(-1)
        self._wake.close()
        self._wake_end.close()

    def _asked_to_stop(self, number: int, frame: FrameType | None) -> None:
        if not self._stopping:  # once: the stopping itself is not interrupted
            self._stopping = True
            raise Stop

    def _start_again(self, watched: Watched, moment: float) -> None:
        try:
            watched.process, watched.started, watched.due = start_child(watched.child), moment, None
        except OSError as error:  # no memory, no process number, no descriptor left: it may pass
            watched.due = moment + LONGEST_DELAY
            self._say(f"{watched.child.name} could not be started ({error}); trying again in {LONGEST_DELAY:g} s.")

    def _look_at(self, watched: Watched, moment: float) -> None:
        code = watched.process.poll()
        if code is None:
            return
        self._ended(watched.process.pid)
        if moment - watched.started > SOUND_AFTER:
            watched.crashes = 0
        delay = min(FIRST_DELAY * 2**watched.crashes, LONGEST_DELAY)
        watched.crashes += 1
        watched.due = moment + delay
        ended = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        self._say(f"{watched.child.name} {ended}; starting it again in {delay:g} s. Log: {watched.child.log}")
        if code > 0 and (lines := last_lines(watched.child.log)):
            self._say(lines)


def _starter_descriptor() -> list[int]:
    """A descriptor that becomes readable when the `uv run` that started this ends: it waits for us, so it was killed,
    and who killed it meant us. Empty when somebody else started this, or the system cannot tell."""
    try:
        starter = os.getppid()
        if Path(f"/proc/{starter}/comm").read_text().strip() != "uv":
            return []
        return [os.pidfd_open(starter)]
    except (OSError, AttributeError):
        return []

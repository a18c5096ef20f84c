"""Children that cannot outlive their parent: how they are described, started and stopped.

Start them from a thread that lives as long as they shall: the kernel's parent-death signal fires when the
*thread* that forked ends.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from console.embedded.errors import CannotStart

LAUNCHER = Path(__file__).with_name("launcher.py")
LONGEST_LOG = 10 * 1024 * 1024  # bytes; one older log of the same length is kept beside it
LOG_TAIL = 16 * 1024  # bytes read from the end of a log for a sentence
SILENT_SECONDS = 10.0  # seconds that the server of a killed starter may go on answering
KILL_WAIT = 5.0  # seconds that the kernel may take to end a killed process


@dataclass(frozen=True, kw_only=True)
class RunAs:
    """Whose rights a child has: the parent's own, root's in a user namespace of its own, or another user's."""

    user_namespace: bool = False
    uid: int | None = None
    gid: int | None = None

    def spec(self) -> dict[str, int]:
        if self.user_namespace:
            return {"user_namespace": 1}
        if self.uid is not None and self.gid is not None:
            return {"uid": self.uid, "gid": self.gid}
        return {}


@dataclass(frozen=True, kw_only=True, eq=False)
class Child:
    """One program that its parent starts, watches and stops."""

    name: str
    program: tuple[str, ...]
    log: Path
    folder: Path  # where it runs
    environment: Callable[[], Mapping[str, str]]  # asked anew at every start
    # What it gets to stop, one after the other, each with the seconds it has before the next.
    stops: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 5.0),)
    death_signal: signal.Signals = signal.SIGKILL  # what it gets when its parent dies
    run_as: RunAs = field(default_factory=RunAs)
    pass_fds: tuple[int, ...] = ()


def start_child(child: Child) -> subprocess.Popen[bytes]:
    """Start it in a process group of its own, so that Ctrl-C reaches the parent alone. Output goes to its log."""
    child.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    turn_log(child.log)
    with child.log.open("ab") as log:
        return start_bound(
            list(child.program),
            death_signal=child.death_signal,
            run_as=child.run_as,
            pass_fds=child.pass_fds,
            stdout=log,
            cwd=child.folder,
            env=dict(child.environment()),
        )


def start_bound(
    program: list[str],
    *,
    death_signal: signal.Signals = signal.SIGKILL,
    run_as: RunAs | None = None,
    guarded: bool = sys.platform != "linux",
    pass_fds: tuple[int, ...] = (),
    stdout: IO[bytes] | int = subprocess.DEVNULL,
    cwd: Path,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program that ends when this process does, without input, errors joined to its output.

    `guarded` puts a guard process before it that signals the program's whole group when this process dies or
    the program ends: for programs that start programs of their own.
    """
    spec: dict[str, int] = {"parent": os.getpid(), "death_signal": death_signal, **(run_as or RunAs()).spec()}
    read_end, write_end = os.pipe() if guarded else (None, None)
    if read_end is not None:
        spec["pipe"] = read_end
        pass_fds = (*pass_fds, read_end)
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(spec), *program],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=env,
            pass_fds=pass_fds,
            process_group=0,
        )
    finally:
        if read_end is not None:
            os.close(read_end)
    if write_end is not None:  # open as long as somebody holds the process: its end is the sign
        weakref.finalize(process, os.close, write_end)
    return process


def wait_until_silent(name: str, answers: Callable[[], bool]) -> None:
    """Let the server of a starter that was just killed end, so that the next one's answer is not taken from it.

    Raises CannotStart when it goes on answering: then somebody else runs it.
    """
    deadline = time.monotonic() + SILENT_SECONDS
    while answers():
        if time.monotonic() > deadline:
            raise CannotStart(
                f"A {name} that this command did not start already serves this data directory: stop it, or choose "
                "another directory with --data."
            )
        time.sleep(0.02)


def stop_children(running: Mapping[Child, subprocess.Popen[bytes]]) -> None:
    """Stop these together, each with its own signals, then end what they left in their process groups."""
    began = time.monotonic()
    for child, process in running.items():
        if process.poll() is None:
            process.send_signal(child.stops[0][0])
    for child, process in running.items():
        _wait_or_kill(child, process, began)


def turn_log(log: Path) -> None:
    """Begin a log anew once it is long, keeping the old one as `.1`. It is copied and emptied, not moved, so that
    a writer that has it open to append goes on in it."""
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > LONGEST_LOG:
            shutil.copyfile(log, log.with_name(log.name + ".1"))
            os.truncate(log, 0)


def last_lines(log: Path, count: int = 5) -> str:
    """The end of a log, for a sentence about a child that ended; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join([line for line in lines if line.strip()][-count:])


def _wait_or_kill(child: Child, process: subprocess.Popen[bytes], began: float) -> None:
    deadline = began
    for position, (number, seconds) in enumerate(child.stops):
        if position and process.poll() is None:
            process.send_signal(number)
        deadline += seconds
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
            break
    else:
        process.kill()
        process.wait(KILL_WAIT)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)

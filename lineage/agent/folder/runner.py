"""Runs one command and ends all that it started. A program of its own: `python -I -S runner.py FOLDER COMMAND`.

Its standard input is a lifeline: when the other end closes, because the command is stopped, its time is up or the worker was
killed, everything ends. On Linux it adopts whatever its descendants leave behind, so that nothing escapes by forking twice.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

GRACE_S = 2.0  # what a command has to end by itself after it was asked to
_PR_SET_CHILD_SUBREAPER = 36


def main(folder: str, command: str) -> int:
    """The exit code of `sh -c COMMAND`, 128 + n when signal n ended it."""
    _adopt_orphans()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    child = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True)
    cut = False
    while child.poll() is None and not cut:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 512)
        cut = 0 in ready and not os.read(0, 512)
    _end_all(child)
    code = child.wait()
    return code if code >= 0 else 128 - code


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_all(child: "subprocess.Popen[bytes]") -> None:
    """First ask, then kill; again until nothing is left, since what is being killed may still fork."""
    end = time.monotonic() + GRACE_S
    sign = signal.SIGTERM
    while True:
        _reap(child)
        left = _descendants()
        if not left and child.poll() is not None:
            return
        for pid in left:
            _kill(pid, sign)
        if child.poll() is None:
            _kill_group(child.pid, sign)
        if time.monotonic() > end:
            sign = signal.SIGKILL
        time.sleep(0.02)
        if sys.platform != "linux" and child.poll() is not None:
            _kill_group(child.pid, signal.SIGKILL)
            return


def _reap(child: "subprocess.Popen[bytes]") -> None:
    """Adopted children that ended; the command itself is waited for by its own object."""
    for pid in _children_of().get(os.getpid(), ()):
        if pid != child.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    child.poll()


def _descendants() -> list[int]:
    children = _children_of()
    found: list[int] = []
    seek = [os.getpid()]
    while seek:
        for pid in children.get(seek.pop(), ()):
            found.append(pid)
            seek.append(pid)
    return found


def _children_of() -> dict[int, list[int]]:
    """Processes by parent; empty where there is no /proc."""
    found: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The name in brackets may hold anything, so count from its end.
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        found.setdefault(int(fields[1]), []).append(int(name))
    return found


def _kill(pid: int, sign: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, sign)


def _kill_group(pid: int, sign: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, sign)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))

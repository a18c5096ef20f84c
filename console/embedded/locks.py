"""Who runs the engines of a data directory, and who uses them: three flocks, which end with their process.

`up.lock` is held by an `up`, `engines.lock` by whoever runs the engines (an `up` or a command), and
`users.lock` is shared by the commands that use the engines of another.
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from console.embedded.errors import CannotStart

RETRY = 0.05  # seconds between two looks at a lock: flock(2) itself cannot be asked to give up in time


class Lock:
    """One open lock file. The holder's process number stands in it, for sentences only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def take(self, *, shared: bool = False) -> bool:
        """Take it if it is free; never waits."""
        try:
            fcntl.flock(self.descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise CannotStart(
                f"{self.path} cannot be locked ({error.strerror}): put the data directory on a file system with "
                "locks, with --data."
            ) from error
        if not shared:
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, str(os.getpid()).encode(), 0)
        return True

    def wait(self, say: Callable[[], None]) -> None:
        """Take it as soon as it is free. `say` is called once, if that is not at once."""
        if self.take():
            return
        say()
        while not self.take():
            time.sleep(RETRY)

    def holder(self) -> str:
        """The process number of who holds it, or an unknown one while it changes hands."""
        return os.pread(self.descriptor, 32, 0).decode() or "?"

    def release(self) -> None:
        """Let go of it, keeping the file open for another try."""
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)


@contextmanager
def open_lock(data: Path, name: str) -> Iterator[Lock]:
    """The lock file `name` of a data directory, let go at the end."""
    lock = Lock(data / name)
    try:
        yield lock
    finally:
        lock.close()

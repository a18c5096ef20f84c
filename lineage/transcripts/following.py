"""Following session files as agents write them: file events, and a slow poll where there are none (T3).

What the files say is read by `lineage.transcripts.importing`; a file that vanishes takes nothing along.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from django.db import DatabaseError, InterfaceError, connections
from watchfiles import Change, watch

from lineage.transcripts.folders import META_SUFFIX, SUFFIX, SUFFIXES, FoundFolder, files_under, group_files
from lineage.transcripts.importing import FolderImport, Reading

logger = logging.getLogger(__name__)
logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it would log a line for each line that an agent writes

STEP_MS = 20  # of quiet before a change is passed on: agents write a few lines at a time
DEBOUNCE_MS = 200  # at the most, while they write on and on
TICK_MS = 250  # without a change: files that wait for another, and an error of the database, are tried again
POLL_S = 2.0  # network drives, containers and overrun queues give no events
KEPT = 32  # folders whose readers stay in memory: as many projects as a team works on at once

type Looks = tuple[int, int, int]


class Follower:
    """Reads session files under `paths`, which need not exist yet, as they change. `root` as in an import."""

    def __init__(self, paths: Sequence[Path], *, root: int | None = None) -> None:
        self.paths = [path.absolute() for path in paths]
        self._root = root
        self._folders: dict[tuple[str, Path], FolderImport] = {}
        self._seen: dict[Path, Looks] = {}
        self._again: set[Path] = set()  # what was not read to its end: it waits for another file, or for the database

    @property
    def has_more(self) -> bool:
        """Whether something was left for the next time."""
        return bool(self._again)

    def look_at_all(self) -> list[Reading]:
        """Read what has changed under all paths since it was last read."""
        return self.look_at(path for path in files_under(self.paths) if self._seen.get(path) != _looks(path))

    def look_at(self, paths: Iterable[Path]) -> list[Reading]:
        """Read these files, and those that wait. A database that is away is told in the log and tried again."""
        found = {path: looks for path in {*paths, *self._again} if (looks := _looks(path)) is not None}
        self._again &= set(found)
        readings: list[Reading] = []
        for folder in group_files(sorted(found))[0]:
            files = {file.path for file in folder.files}
            try:
                done = self._reader(folder).read(folder.files, patient=True)
            except (DatabaseError, InterfaceError) as error:
                logger.warning("The database does not answer (%s); trying again.", error)
                self._folders.clear()
                connections.close_all()
                done = []
            read = {one.file.path for one in done if not one.failed or one.lasting}
            self._seen |= {path: found[path] for path in read}
            self._again = (self._again - read) | (files - read)
            readings += done
        return readings

    def _reader(self, folder: FoundFolder) -> FolderImport:
        """The folder's reader. The memory of those that were not needed for long is given back."""
        key = (folder.format, folder.path)
        reader = self._folders.pop(key, None) or FolderImport(format=key[0], path=key[1], root=self._root)
        self._folders[key] = reader
        while len(self._folders) > KEPT:
            del self._folders[next(iter(self._folders))]
        return reader


def follow_until(stopped: threading.Event, follower: Follower, tell: Callable[[list[Reading]], None]) -> None:
    """Read what is there, then what comes, until `stopped`. `tell` gets what was read, each time."""
    while not stopped.is_set():
        watched = _watchable(follower.paths)
        if not watched:
            stopped.wait(POLL_S)
            continue
        due = 0.0  # the first look comes after the events have begun: nothing falls between
        for changes in watch(
            *watched,
            watch_filter=_may_matter,
            step=STEP_MS,
            debounce=DEBOUNCE_MS,
            rust_timeout=TICK_MS,
            yield_on_timeout=True,
            stop_event=stopped,
            raise_interrupt=False,
        ):
            if time.monotonic() >= due:
                tell(follower.look_at_all())
                due = time.monotonic() + POLL_S
                if _watchable(follower.paths) != watched:
                    break  # a folder came, or came anew: events of it need a new watch
            elif changes or follower.has_more:
                tell(follower.look_at(_changed_files(changes)))


def _changed_files(changes: Iterable[tuple[Change, str]]) -> list[Path]:
    """Session files that these events are about: of a new folder those in it, of a meta file the one that it is beside."""
    found: list[Path] = []
    for _, name in changes:
        path = Path(name.removesuffix(META_SUFFIX) + SUFFIX) if name.endswith(META_SUFFIX) else Path(name)
        found += files_under([path]) if path.is_dir() else [path]
    return found


def _may_matter(change: Change, name: str) -> bool:
    return name.endswith((*SUFFIXES, META_SUFFIX)) or (change == Change.added and Path(name).is_dir())


def _watchable(paths: Sequence[Path]) -> dict[Path, tuple[int, int]]:
    """Those that are there, each with what tells it from one made anew in its place."""
    found: dict[Path, tuple[int, int]] = {}
    for path in paths:
        try:
            stat = path.stat()
        except OSError:
            continue
        found[path] = (stat.st_dev, stat.st_ino)
    return found


def _looks(path: Path) -> Looks | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns

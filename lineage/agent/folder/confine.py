"""Paths that cannot leave the folder (A2), whatever links stand in them and however they change meanwhile.

A path is walked one name at a time from the folder's own descriptor, without following links: a link is read and its parts are
walked like any others. `..` goes back to the descriptor that the walk came from, so that a folder moved elsewhere leads nowhere.
What is opened is asked again what it is, and only regular files are read: never a FIFO, which would wait, or a device.
The console's own data directory is nobody's working folder, not even where it lies inside of one: it holds the secret key.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from console.data import data_dir
from lineage.agent.failures import ToolFailed

LINKS = 40
"""Links of one path: what Linux follows. More is a circle."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: should the name become a FIFO after it was looked at, opening it must not wait.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Missing(ToolFailed):
    """A folder on the way to the place does not exist."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A name inside an open folder. `name` is "." for the folder itself; `shown` is the path as the model wrote it."""

    folder: int
    name: str
    shown: str

    def stat(self) -> os.stat_result | None:
        """What stands there, links not followed; none when nothing does."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None


@contextmanager
def place_of(root: str, path: str, *, making: bool = False) -> Iterator[Place]:
    """The place that `path` names in the folder `root`, while the block runs. With `making`, missing folders on the way are made.

    The last name need not exist. Raises `ToolFailed`.
    """
    parts = _parts(root, path)
    with ExitStack() as opened:
        walked = [_open_root(root, opened)]
        links = 0
        name = "."
        while parts:
            name = parts.pop(0)
            if name in {"", "."}:
                name = "."
                continue
            if name == "..":
                if len(walked) == 1:
                    raise _outside(path)
                walked.pop()
                name = "."
                continue
            target = _link_target(walked[-1], name)
            if target is not None:
                links += 1
                if links > LINKS:
                    raise ToolFailed(f"{path} has more than {LINKS} symbolic links, which looks like a circle.")
                if target.startswith("/"):
                    raise _outside(path)
                parts = [*target.split("/"), *parts]
                name = "."
                continue
            if any(part not in {"", "."} for part in parts):
                walked.append(_open_folder(walked[-1], name, path, opened, making))
                name = "."
        yield Place(folder=walked[-1], name=name, shown=path)


@contextmanager
def open_file(place: Place) -> Iterator[int]:
    """A descriptor of the regular file there. Raises `ToolFailed` for anything else."""
    found = place.stat()
    if found is None:
        raise ToolFailed(f"There is no file {place.shown}. Look with list_dir, or find it with search.")
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailed(f"{place.shown} is a folder, not a file. See what is in it with list_dir.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailed(f"{place.shown} is {kind_of(found.st_mode)}, not a file that can be read.")
    try:
        file = os.open(place.name, _FILE, dir_fd=place.folder)
    except PermissionError:
        raise ToolFailed(f"{place.shown} may not be read by the console: its permissions forbid it.") from None
    except OSError:
        raise _changed(place) from None
    try:
        now = os.fstat(file)
        if not stat.S_ISREG(now.st_mode) or (now.st_dev, now.st_ino) != (found.st_dev, found.st_ino):
            raise _changed(place)
        yield file
    finally:
        os.close(file)


@contextmanager
def open_folder(place: Place) -> Iterator[int]:
    """A descriptor of the folder there. Raises `ToolFailed` when it is none."""
    try:
        folder = os.open(place.name, _FOLDER, dir_fd=place.folder)
    except FileNotFoundError:
        raise ToolFailed(f"There is no folder {place.shown}. List the folder above it with list_dir.") from None
    except NotADirectoryError:
        raise ToolFailed(f"{place.shown} is not a folder. Read it with read_file.") from None
    except PermissionError:
        raise ToolFailed(f"{place.shown} may not be read by the console: its permissions forbid it.") from None
    try:
        _refuse_private(os.fstat(folder), place.shown)
        yield folder
    finally:
        os.close(folder)


def is_private(found: os.stat_result) -> bool:
    """Whether this is the console's data directory, by whatever name it was reached."""
    try:
        own = os.stat(data_dir())
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)


def kind_of(mode: int) -> str:
    """What stands there, in words."""
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISFIFO(mode):
        return "a FIFO"
    if stat.S_ISSOCK(mode):
        return "a socket"
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        return "a device"
    return "a folder" if stat.S_ISDIR(mode) else "a file"


def _parts(root: str, path: str) -> list[str]:
    if "\0" in path:
        raise ToolFailed("The path holds U+0000, which no file name has.")
    path = path.strip() or "."
    inside = root.rstrip("/") + "/"
    if path.startswith(inside):  # models like whole paths; it is walked below the folder all the same
        path = path[len(inside) :]
    elif path == root.rstrip("/"):
        path = "."
    if path.startswith("/"):
        raise _outside(path)
    return path.split("/")


def _open_root(root: str, opened: ExitStack) -> int:
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ToolFailed(
            f"The working folder {root} cannot be opened ({error.strerror}). Someone has to bring it back."
        ) from None
    opened.callback(os.close, folder)
    _refuse_private(os.fstat(folder), root)
    return folder


def _open_folder(above: int, name: str, path: str, opened: ExitStack, making: bool) -> int:
    try:
        if making:
            with suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=above)
        folder = os.open(name, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        raise Missing(f"There is no {path}: the folder {name} on the way does not exist.") from None
    except PermissionError:
        raise ToolFailed(f"{path} cannot be reached: the permissions of {name} forbid it.") from None
    except OSError:
        raise ToolFailed(f"There is no {path}: {name} on the way is not a folder.") from None
    opened.callback(os.close, folder)
    _refuse_private(os.fstat(folder), path)
    return folder


def _link_target(folder: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:  # no link, or nothing at all: what opens it will say
        return None


def _refuse_private(found: os.stat_result, path: str) -> None:
    if is_private(found):
        raise ToolFailed(f"{path} leads into the console's own data, which no agent reads. Use another path.")


def _outside(path: str) -> ToolFailed:
    return ToolFailed(
        f"{path} lies outside the working folder, and nothing outside can be reached. Use a path inside it."
    )


def _changed(place: Place) -> ToolFailed:
    return ToolFailed(f"{place.shown} changed while it was being opened. Try once more.")

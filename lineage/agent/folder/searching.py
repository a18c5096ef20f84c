"""`search` (A2): lines that hold a text. Plain text, so that no pattern can take for ever; links are not followed."""

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from lineage.agent.failures import ToolFailed
from lineage.agent.folder.confine import is_private, open_folder, place_of

MATCHES = 200
"""Lines shown: more is a question that was too wide."""

LINE_CHARACTERS = 300
"""Characters of a line that are shown, around its first match."""

FILE_BYTES = 4 * 1024 * 1024
"""Larger files are data or built things; they are counted and named as not searched."""

SECONDS = 20.0
"""What a search may take; the answer says when it ended early."""

_SKIPPED = frozenset({".git", ".hg", ".svn"})
_PROBE = 8192  # a zero byte within so many is the usual sign of a file that is not text
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(kw_only=True)
class _Tally:
    found: list[str] = field(default_factory=list)
    files: int = 0
    large: list[str] = field(default_factory=list)
    binary: int = 0
    unread: int = 0
    ended: str = ""


def search(root: str, text: str, path: str = ".", ignore_case: bool = False, glob: str = "") -> str:
    """`file:line: text` of each match, in order of paths. `glob` is held against the name, or the whole path if it has a slash."""
    if not text or "\n" in text:
        raise ToolFailed("The text to search for is a part of one line: not empty, and without a line break.")
    wanted = text.casefold() if ignore_case else text
    tally = _Tally()
    end = time.monotonic() + SECONDS
    with place_of(root, path) as place:
        found = place.stat()
        if found is not None and stat.S_ISREG(found.st_mode):
            _search_file(place.folder, place.name, path, wanted, ignore_case, tally)
        else:
            with open_folder(place) as folder:
                base = "" if path.strip() in {"", "."} else path.strip().rstrip("/") + "/"
                for folder_fd, name, shown in _files(folder, base):
                    if glob and not fnmatchcase(shown if "/" in glob else name, glob):
                        continue
                    _search_file(folder_fd, name, shown, wanted, ignore_case, tally)
                    if len(tally.found) > MATCHES:
                        tally.ended = (
                            f"The first {MATCHES} matches are shown, and there are more: narrow it with path or glob."
                        )
                        break
                    if time.monotonic() > end:
                        tally.ended = (
                            f"The search ended after {SECONDS:.0f} s and has not seen all: narrow it with path or glob."
                        )
                        break
    return _answer(text, tally, ignore_case, glob)


def _files(folder: int, base: str) -> Iterator[tuple[int, str, str]]:
    for here, folders, files, fd in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not _is_private(name, fd))
        inside = base + (here[2:] + "/" if here != "." else "")
        for name in sorted(files):
            yield fd, name, inside + name


def _is_private(name: str, folder: int) -> bool:
    try:
        return is_private(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except OSError:
        return True  # gone meanwhile


def _search_file(folder: int, name: str, shown: str, wanted: str, ignore_case: bool, tally: _Tally) -> None:
    shown = shown.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        looked = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(looked.st_mode):
            return
        if looked.st_size > FILE_BYTES:
            tally.large.append(shown)
            return
        file = os.open(name, _READ, dir_fd=folder)
    except OSError:
        tally.unread += 1
        return
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            return
        content = opened.read(FILE_BYTES + 1)
    if b"\0" in content[:_PROBE]:
        tally.binary += 1
        return
    tally.files += 1
    text = content.decode("utf-8", "replace")
    if wanted not in (text.casefold() if ignore_case else text):
        return
    for number, line in enumerate(text.split("\n"), 1):
        at = (line.casefold() if ignore_case else line).find(wanted)
        if at >= 0:
            tally.found.append(f"{shown}:{number}: {_around(line, at)}")
            if len(tally.found) > MATCHES:
                return


def _around(line: str, at: int) -> str:
    if len(line) <= LINE_CHARACTERS:
        return line
    start = max(0, min(at - 80, len(line) - LINE_CHARACTERS))
    before, after = "…" if start else "", "…" if start + LINE_CHARACTERS < len(line) else ""
    return f"{before}{line[start : start + LINE_CHARACTERS]}{after}"


def _answer(text: str, tally: _Tally, ignore_case: bool, glob: str) -> str:
    notes = [tally.ended] if tally.ended else []
    if tally.large:
        named = ", ".join(tally.large[:5]) + (f" and {len(tally.large) - 5} more" if len(tally.large) > 5 else "")
        notes.append(f"Not searched, since larger than {FILE_BYTES} bytes: {named}.")
    if tally.binary:
        notes.append(f"{tally.binary} files are not text and were passed over.")
    if tally.unread:
        notes.append(f"{tally.unread} files could not be read.")
    if tally.found:
        return "\n".join([*tally.found[:MATCHES], *([f"\n({' '.join(notes)})"] if notes else [])])
    tried = "" if ignore_case else " Try ignore_case."
    tried += " Try another glob." if glob else " Try a shorter text."
    return " ".join([f"No line of {tally.files} files holds {text!r}.{tried}", *notes])

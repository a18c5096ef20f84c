"""`read_file` and `list_dir` (A2). What is not shown is said, with the numbers to ask for it."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from lineage.agent.failures import ToolFailed
from lineage.agent.folder.confine import kind_of, open_file, open_folder, place_of
from lineage.agent.prompt import READ_LINES

READ_CHARACTERS = 30_000
"""Characters of one answer: below the limit of a tool result, so that the sentence at its end always arrives."""

LINE_CHARACTERS = 2_000
"""Characters of one line that are shown: longer ones are data, not text that someone wrote."""

SCANNED_BYTES = 64 * 1024 * 1024
"""Bytes of a file that are looked through for lines: a second's work. The answer says when a file goes on."""

LISTED = 1_000
"""Names of one folder that are shown."""

_CHUNK = 1024 * 1024


def read_file(root: str, path: str, start_line: int = 1, end_line: int | None = None) -> str:
    """Lines `start_line` to `end_line` (both included, from 1), at most `READ_LINES`. Raises `ToolFailed`."""
    if start_line < 1 or (end_line is not None and end_line < start_line):
        raise ToolFailed("start_line counts from 1, and end_line is not before it. Correct the numbers.")
    last = start_line + READ_LINES - 1 if end_line is None else min(end_line, start_line + READ_LINES - 1)
    with place_of(root, path) as place, open_file(place) as file:
        found = _read_lines(file, path, start_line, last)
    if found.total == 0:
        return f"{path} is empty."
    if not found.lines:
        raise ToolFailed(f"{path} has {found.said} lines, so there is no line {start_line}. Ask for one that it has.")
    text = "\n".join(found.lines)
    return f"{text}\n\n{_what_is_shown(path, start_line, found)}"


def list_dir(root: str, path: str = ".") -> str:
    """What stands in a folder: folders first, then files with their sizes. Raises `ToolFailed`."""
    with place_of(root, path) as place, open_folder(place) as folder:
        with os.scandir(folder) as entries:
            rows = [(not entry.is_dir(follow_symlinks=False), entry.name) for entry in entries]
        rows.sort()
        lines = [_listed(folder, name) for _, name in rows[:LISTED]]
    if not lines:
        return f"{path} is empty."
    if len(rows) > LISTED:
        lines.append(f"\n({len(rows)} names in all; the first {LISTED} are shown. Find others with search and a glob.)")
    return "\n".join(lines)


@dataclass(kw_only=True)
class _Lines:
    lines: list[str]
    total: int  # lines of the file, or of what was looked through
    complete: bool  # the whole file was looked through
    replaced: bool  # some bytes were not UTF-8

    @property
    def said(self) -> str:
        return f"{self.total}" if self.complete else f"more than {self.total}"


def _read_lines(file: int, path: str, first: int, last: int) -> _Lines:
    found = _Lines(lines=[], total=0, complete=True, replaced=False)
    room, full = READ_CHARACTERS, False
    for number, raw in enumerate(_raw_lines(file, path, found), 1):
        found.total = number
        if full or not first <= number <= last:
            continue
        line = raw.decode("utf-8", "replace")
        found.replaced = found.replaced or "�" in line
        if len(line) > LINE_CHARACTERS:
            line = f"{line[:LINE_CHARACTERS]}… (this line has {len(line)} characters)"
        if found.lines and len(line) > room:
            full = True
            continue
        found.lines.append(line)
        room -= len(line) + 1
    return found


def _raw_lines(file: int, path: str, found: _Lines) -> Iterator[bytes]:
    """Lines without their LF. A last line without one counts; the end after a final LF does not."""
    pieces: list[bytes] = []  # of a line that is longer than one read
    scanned = 0
    while chunk := os.read(file, _CHUNK):
        if b"\0" in chunk:
            raise ToolFailed(
                f"{path} is not text: it holds zero bytes. Use run_command with a program that knows its format."
            )
        scanned += len(chunk)
        *whole, rest = chunk.split(b"\n")
        if whole:
            yield b"".join([*pieces, whole[0]])
            yield from whole[1:]
            pieces = []
        if rest:
            pieces.append(rest)
        if scanned >= SCANNED_BYTES:
            found.complete = False
            return
    if pieces:
        yield b"".join(pieces)


def _what_is_shown(path: str, first: int, found: _Lines) -> str:
    last = first + len(found.lines) - 1
    hidden = [f"1 to {first - 1}"] if first > 1 else []
    if last < found.total:
        hidden.append(f"{last + 1} to {found.total}")
    said = f"(Lines {first} to {last} of {found.said} of {path}."
    said += f" Not shown: lines {' and '.join(hidden)}." if hidden else " Nothing is left out."
    if not found.complete:
        said += f" The file is longer than {SCANNED_BYTES} bytes, and its later lines were not looked at."
    if found.replaced:
        said += " Some bytes are not UTF-8 and are shown as �."
    return said + ")"


def _listed(folder: int, name: str) -> str:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return f"{name} (gone meanwhile)"
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if stat.S_ISDIR(found.st_mode):
        return f"{shown}/"
    if stat.S_ISREG(found.st_mode):
        return f"{shown} ({found.st_size} bytes)"
    if stat.S_ISLNK(found.st_mode):
        target = os.readlink(name, dir_fd=folder).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return f"{shown} -> {target}"
    return f"{shown} ({kind_of(found.st_mode)})"

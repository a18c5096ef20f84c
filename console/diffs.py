"""A diff of two texts as rows for a table: numbers on both sides, and what changed within a line. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from console.json_text import storable

# difflib is quadratic at worst. Beyond these the rows are "all old, all new", which is true, only longer.
COMPARED_LINES = 2_000
COMPARED_CHARACTERS = 400  # of one line, for the marks within it
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
CONTEXT = 3  # unchanged lines around a change
ROWS = 400  # rows of one diff in a page; more are said, and shown when asked for


@dataclass(frozen=True, kw_only=True)
class Row:
    """`kind` is "same", "add", "del" or "gap"; `parts` are (text, changed within the line)."""

    kind: str
    old: int | None = None
    new: int | None = None
    parts: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Diff:
    rows: tuple[Row, ...]
    added: int
    removed: int
    left_out: int  # rows beyond the limit


def diff(old: str, new: str, *, rows: int = ROWS) -> Diff:
    """The diff of two texts, line by line, the first `rows` rows of it."""
    before, after = old.splitlines(), new.splitlines()
    found: list[Row] = []
    added = removed = 0
    for tag, i1, i2, j1, j2 in _changes(before, after):
        if tag == "equal":
            found += _context(before, i1, i2, j1, first=not found, last=i2 == len(before) and j2 == len(after))
            continue
        added, removed = added + j2 - j1, removed + i2 - i1
        found += _changed(before[i1:i2], after[j1:j2], i1, j1)
    return Diff(rows=tuple(found[:rows]), added=added, removed=removed, left_out=max(0, len(found) - rows))


def hunks_of(unified: str) -> list[dict[str, Any]]:
    """The hunks of one file's unified diff, as `patch` takes them. Lines before the first hunk name files."""
    hunks: list[dict[str, Any]] = []
    for line in unified.split("\n"):
        head = _HUNK.match(line)
        if head:
            hunks.append({"oldStart": int(head[1]), "newStart": int(head[2]), "lines": []})
        elif hunks and line[:1] in {"+", "-", " "}:
            hunks[-1]["lines"].append(line)
    return hunks


def patch(hunks: list[Any]) -> Diff:
    """The rows of hunks `{oldStart, newStart, lines: ["+a", "-b", " c"]}`; what has another shape is left out."""
    found: list[Row] = []
    added = removed = 0
    for hunk in hunks:
        lines = hunk.get("lines") if isinstance(hunk, dict) else None
        if not isinstance(lines, list):
            continue
        old, new = _start(hunk, "oldStart"), _start(hunk, "newStart")
        if found:
            found.append(Row(kind="gap", old=old, new=new))
        for line in lines:
            if not isinstance(line, str) or line.startswith("\\"):
                continue
            mark, text = line[:1], storable(line[1:])
            if mark == "+":
                found.append(Row(kind="add", new=new, parts=((text, False),)))
                added, new = added + 1, new + 1
            elif mark == "-":
                found.append(Row(kind="del", old=old, parts=((text, False),)))
                removed, old = removed + 1, old + 1
            else:
                found.append(Row(kind="same", old=old, new=new, parts=((text, False),)))
                old, new = old + 1, new + 1
    return Diff(rows=tuple(found), added=added, removed=removed, left_out=0)


def _start(hunk: dict[str, Any], key: str) -> int:
    found = hunk.get(key)
    return found if isinstance(found, int) and found > 0 else 1


def _changes(before: list[str], after: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """What differs, the common ends left out of the comparison: most edits are small."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    if start:
        yield "equal", 0, start, 0, start
    a, b = before[start : len(before) - end], after[start : len(after) - end]
    if len(a) + len(b) > COMPARED_LINES:
        yield "replace", start, start + len(a), start, start + len(b)
    else:
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
            yield tag, start + i1, start + i2, start + j1, start + j2
    if end:
        yield "equal", len(before) - end, len(before), len(after) - end, len(after)


def _context(before: list[str], i1: int, i2: int, j1: int, *, first: bool, last: bool) -> Iterator[Row]:
    head = 0 if first else CONTEXT
    tail = 0 if last else CONTEXT
    length = i2 - i1
    for n in range(length):
        if n < head or n >= length - tail:
            yield Row(kind="same", old=i1 + n + 1, new=j1 + n + 1, parts=((before[i1 + n], False),))
        elif n == head and not last:
            yield Row(kind="gap", old=i1 + n + 1, new=j1 + n + 1, parts=((str(length - head - tail), False),))


def _changed(before: list[str], after: list[str], i: int, j: int) -> Iterator[Row]:
    pairs = [_within(a, b) for a, b in zip(before, after, strict=False)] if len(before) == len(after) else []
    for n, line in enumerate(before):
        parts = pairs[n][0] if pairs else ((line, False),)
        yield Row(kind="del", old=i + n + 1, parts=parts)
    for n, line in enumerate(after):
        parts = pairs[n][1] if pairs else ((line, False),)
        yield Row(kind="add", new=j + n + 1, parts=parts)


_Parts = tuple[tuple[str, bool], ...]


def _within(old: str, new: str) -> tuple[_Parts, _Parts]:
    """Marks of what changed within a line; none where the lines have little in common."""
    plain: tuple[_Parts, _Parts] = (((old, False),), ((new, False),))
    if max(len(old), len(new)) > COMPARED_CHARACTERS:
        return plain
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < 0.5:
        return plain
    kept = [(m.a, m.b, m.size) for m in matcher.get_matching_blocks()]
    return _marked(old, [(a, n) for a, _, n in kept]), _marked(new, [(b, n) for _, b, n in kept])


def _marked(text: str, kept: list[tuple[int, int]]) -> _Parts:
    parts: list[tuple[str, bool]] = []
    for (start, size), (following, _) in pairwise([(0, 0), *kept, (len(text), 0)]):
        parts.append((text[start : start + size], False))
        parts.append((text[start + size : following], True))
    return tuple((part, changed) for part, changed in parts if part)

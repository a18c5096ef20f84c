"""Who wrote what (D15): runs of `[actor, length]` over a text, in code points, and how a batch changes them.

Pure. In each edit, what a bounded diff of old and new string keeps keeps its author, the rest is the batch's.
The browser draws its own estimate until the page is opened again (`static/documents/authorship.js`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rapidfuzz.distance import Indel

from documents.edits import Edit, walk_edits

MAX_CELLS = 4 * 1024 * 1024
"""Product of two lengths that is still compared character by character: about a millisecond, and 0.5 MB."""

MAX_LINE_CELLS = 16 * 1024 * 1024
"""The same for lines, of which a document of 2 Mi code points seldom has more than 40,000."""

LEAST_KEPT = 3
"""Code points between two changes that count as kept; fewer are letters that two words happen to share."""

BLOCK = 512
"""Runs in one block: splicing looks through blocks first, so that an edit costs the root of their number."""

type Run = tuple[int, int]
"""An actor's id and a length in code points."""


class Range(NamedTuple):
    """`old[old_from:old_to]` became `new[new_from:new_to]`; what lies between ranges was kept."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


def fold_authors(runs: Iterable[Run], text: str, edits: Sequence[Edit], actor: int) -> list[Run]:
    """The runs after `actor`'s batch on `text`, whose runs these are: their lengths sum to the text's length.

    Raises `EditError` as `apply_edits` does; a recorded batch always applies.
    """
    authors = Authors(runs)
    authors.fold(text, edits, actor)
    return authors.runs()


class Authors:
    """The runs of one text while batches are folded over them."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._blocks: list[list[Run]] = []
        self._lengths: list[int] = []
        self._refill(0, 0, list(runs))

    def fold(self, text: str, edits: Sequence[Edit], actor: int) -> str:
        """Folds one batch of `actor` on `text` and returns the text after it."""
        for at, edit, after in walk_edits(text, edits):
            for range_ in reversed(bounded_diff(edit.old_string, edit.new_string)):
                start = at + range_.old_from
                self.replace(start, at + range_.old_to, [(actor, range_.new_to - range_.new_from)])
            text = after
        return text

    def replace(self, start: int, end: int, runs: list[Run]) -> None:
        """Replaces what covers `start` to `end` (code points) with `runs`."""
        first = before = 0
        while first < len(self._blocks) - 1 and before + self._lengths[first] < start:
            before += self._lengths[first]
            first += 1
        last, after = first, before
        touched: list[Run] = []
        while last < len(self._blocks) and after <= end:
            touched += self._blocks[last]
            after += self._lengths[last]
            last += 1
        kept = _cut(touched, 0, start - before) + runs + _cut(touched, end - before, after - before)
        self._refill(first, last, kept)

    def runs(self) -> list[Run]:
        """The runs in order: none is empty, and neighbours have different actors."""
        return list(_joined(run for block in self._blocks for run in block))

    def _refill(self, first: int, last: int, runs: list[Run]) -> None:
        runs = list(_joined(runs))
        blocks = [runs[i : i + BLOCK] for i in range(0, len(runs), BLOCK)]
        self._blocks[first:last] = blocks
        self._lengths[first:last] = [sum(length for _, length in block) for block in blocks]


def _cut(runs: Sequence[Run], start: int, end: int) -> list[Run]:
    """The part of the runs between two offsets."""
    part: list[Run] = []
    at = 0
    for actor, length in runs:
        if at >= end:
            break
        kept = min(at + length, end) - max(at, start)
        if kept > 0:
            part.append((actor, kept))
        at += length
    return part


def _joined(runs: Iterable[Run]) -> Iterator[Run]:
    last: Run | None = None
    for actor, length in runs:
        if length == 0:
            continue
        if last is not None and last[0] == actor:
            last = (actor, last[1] + length)
        else:
            if last is not None:
                yield last
            last = (actor, length)
    if last is not None:
        yield last


def bounded_diff(old: str, new: str) -> list[Range]:
    """What changed from `old` to `new`, as ranges in order (code points); what lies between them is equal.

    Bounded in time: by characters where that is cheap, else by lines, else the whole of what lies between the
    common beginning and the common end.
    """
    start = _common_prefix(old, new)
    end = _common_suffix(old[start:], new[start:])
    middle = Range(start, len(old) - end, start, len(new) - end)
    if middle.old_from == middle.old_to and middle.new_from == middle.new_to:
        return []
    return list(_presentable(old, _by_characters_or_lines(old, new, middle)))


def _by_characters_or_lines(old: str, new: str, part: Range) -> Iterator[Range]:
    if (part.old_to - part.old_from) * (part.new_to - part.new_from) <= MAX_CELLS:
        yield from _by_characters(old, new, part)
        return
    # Any cutting into pieces gives a true diff, so these are Python's lines, not a document's.
    a = old[part.old_from : part.old_to].splitlines(keepends=True)
    b = new[part.new_from : part.new_to].splitlines(keepends=True)
    if len(a) * len(b) > MAX_LINE_CELLS:
        yield part
        return
    cells = MAX_CELLS
    old_at, new_at = _offsets(a, part.old_from), _offsets(b, part.new_from)
    for range_ in _changed(a, b):
        lines = Range(old_at[range_.old_from], old_at[range_.old_to], new_at[range_.new_from], new_at[range_.new_to])
        cells -= (lines.old_to - lines.old_from) * (lines.new_to - lines.new_from)
        if cells >= 0:
            yield from _by_characters(old, new, lines)
        else:
            yield lines


def _by_characters(old: str, new: str, part: Range) -> Iterator[Range]:
    a, b = old[part.old_from : part.old_to], new[part.new_from : part.new_to]
    for range_ in _changed(a, b):
        yield Range(
            part.old_from + range_.old_from,
            part.old_from + range_.old_to,
            part.new_from + range_.new_from,
            part.new_from + range_.new_to,
        )


def _changed(a: Sequence[str], b: Sequence[str]) -> Iterator[Range]:
    """The ranges where two sequences differ, by their longest common subsequence."""
    last: Range | None = None
    for op in Indel.opcodes(a, b):
        if op.tag == "equal":
            continue
        range_ = Range(op.src_start, op.src_end, op.dest_start, op.dest_end)
        if last is not None and last.old_to == range_.old_from and last.new_to == range_.new_from:
            last = Range(last.old_from, range_.old_to, last.new_from, range_.new_to)
            continue
        if last is not None:
            yield last
        last = range_
    if last is not None:
        yield last


def _presentable(old: str, ranges: Iterable[Range]) -> Iterator[Range]:
    """Joins ranges that only a few characters of one line part."""
    last: Range | None = None
    for range_ in ranges:
        if last is not None:
            between = old[last.old_to : range_.old_from]
            if len(between) < LEAST_KEPT and "\n" not in between:
                last = Range(last.old_from, range_.old_to, last.new_from, range_.new_to)
                continue
            yield last
        last = range_
    if last is not None:
        yield last


def _offsets(lines: Sequence[str], start: int) -> list[int]:
    offsets = [start]
    for line in lines:
        start += len(line)
        offsets.append(start)
    return offsets


def _common_prefix(a: str, b: str) -> int:
    """How many code points two strings begin with in common, by halving: slices compare at memory speed."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(a: str, b: str) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low

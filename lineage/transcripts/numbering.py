"""Ordinals of a transcript's conversation and numbers of ours (L2). Pure.

They run in step until somebody else writes into the conversation (a note, a document's edits); then a new pair begins.
"""

from bisect import bisect_right


class Numbering:
    """`pairs` are [ordinal, seq]: from that ordinal on, entries count on from that seq. `base` is the seq before the first."""

    def __init__(self, base: int, count: int = 0, pairs: list[list[int]] | None = None) -> None:
        self.base = base
        self.count = count
        self.pairs = pairs or []

    def seq_of(self, ordinal: int) -> int:
        """The number of an entry that was read; of ordinal 0 the number before the first, which an inherited one may have."""
        if not 0 <= ordinal <= self.count:
            raise ValueError(f"ordinal {ordinal} of {self.count}")
        return self._counted(ordinal) if ordinal else self.base

    def add(self, count: int, head: int) -> None:
        """`count` entries are written now, after number `head`."""
        if not self.pairs or self._counted(self.count + 1) != head + 1:
            self.pairs.append([self.count + 1, head + 1])
        self.count += count

    def _counted(self, ordinal: int) -> int:
        first, seq = self.pairs[bisect_right(self.pairs, [ordinal, 1 << 62]) - 1]
        return seq + ordinal - first

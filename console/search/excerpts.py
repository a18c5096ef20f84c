"""The line that shows why a text was found: around its first marked word, with the places of all of them. Pure."""

import re
from collections.abc import Sequence

LENGTH = 240  # characters of an excerpt
BEFORE = 60  # of them before the first word


def excerpt(text: str, words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """One line of the text, and where the words lie in it: (from, to) in code points."""
    flat = " ".join(text.split())
    alternatives = "|".join(re.escape(word) for word in sorted(set(words), key=len, reverse=True))
    pattern = re.compile(rf"(?<![^\W_])(?:{alternatives})[^\W_]*", re.IGNORECASE)
    first = pattern.search(flat)
    start = _start(flat, max(0, first.start() - BEFORE)) if first else 0
    shown = flat[start : start + LENGTH]
    lead, trail = "…" if start else "", "…" if start + LENGTH < len(flat) else ""
    marks = [(found.start() + len(lead), found.end() + len(lead)) for found in pattern.finditer(shown)]
    return f"{lead}{shown}{trail}", marks


def _start(flat: str, at: int) -> int:
    """The beginning of a word, if one is near."""
    gap = flat.find(" ", at, at + BEFORE // 2)
    return gap + 1 if at and gap >= 0 else at

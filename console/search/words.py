"""Words of texts and of questions, in one form on both sides, so that PostgreSQL's parser meets nothing to interpret. Pure.

Whatever is neither letter nor digit parts words: `shipping/labels.py` and `next_page` are found by any of their parts, and by
the whole, which asks for its parts one after the other. Scripts without spaces are parted at every character.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

QUESTION_LENGTH = 300  # characters of a question
TERMS = 16  # of one question
WORD_LENGTH = 60  # of a word; longer ones (hashes, encoded bytes) are found by their beginning
PREFIX_LENGTH = 2  # the last word of a term is also found as the beginning of a longer one, from so many characters on
PIECE = 8_000  # characters of one piece: far from PostgreSQL's 1 MB of words and 16,383 positions
PIECES = {"entry": 8, "document": 256, "memory": 1, "title": 1}  # pieces that are read of one text

_UNSPACED = "぀-ヿ㐀-䶿一-鿿가-힯豈-﫿"  # kana, ideographs, hangul
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_TERM = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question as PostgreSQL's tsquery, and the words that an excerpt marks."""

    query: str
    marked: tuple[str, ...]


def words_of(text: str) -> list[str]:
    return [word[:WORD_LENGTH] for word in _WORD.findall(text)]


def question_of(asked: str) -> Question | None:
    """All terms must be there: words, "words in this order", -not this one. None where nothing is asked for."""
    wanted: list[str] = []
    unwanted: list[str] = []
    marked: list[str] = []
    for minus, quoted, plain in list(_TERM.findall(asked))[:TERMS]:
        words = words_of(quoted or plain)
        if not words:
            continue
        term = " <-> ".join(f"'{word}'" for word in words)
        if plain and len(words[-1]) >= PREFIX_LENGTH:
            term += ":*"
        (unwanted if minus else wanted).append(f"({term})")
        if not minus:
            marked += words
    if not wanted:
        return None
    return Question(query=" & ".join([*wanted, *(f"!{term}" for term in unwanted)]), marked=tuple(marked))


def pieces_of(text: str, most: int) -> Iterator[tuple[str, bool]]:
    """The text in pieces that end between words where they can, at most `most`; whether the text goes on after the last."""
    at = 0
    for number in range(most):
        end = at + PIECE
        if end < len(text):
            gap = max(text.rfind(" ", at + PIECE // 2, end), text.rfind("\n", at + PIECE // 2, end))
            end = gap + 1 if gap > 0 else end
        rest = end < len(text)
        yield text[at:end], rest and number == most - 1
        if not rest:
            return
        at = end

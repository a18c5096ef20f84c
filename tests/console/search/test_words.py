"""Words, pieces and excerpts, without a database (C5)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.search.excerpts import BEFORE, LENGTH, excerpt
from console.search.texts import text_of
from console.search.words import PIECE, TERMS, WORD_LENGTH, pieces_of, question_of, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ship on Thursday.", ["Ship", "on", "Thursday"]),
        ("shipping/labels.py next_page", ["shipping", "labels", "py", "next", "page"]),
        ("v3.13 -7 1e5", ["v3", "13", "7", "1e5"]),
        ("Größe naïve Ω", ["Größe", "naïve", "Ω"]),
        ("配送 plan", ["配", "送", "plan"]),
        ("'; DROP -- | & ! ( ) : * <->", ["DROP"]),
        ("", []),
        ("x" * 200, ["x" * WORD_LENGTH]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("asked", "query"),
    [
        ("retry webhook", "('retry':*) & ('webhook':*)"),
        ('"retry webhook"', "('retry' <-> 'webhook')"),
        ("labels.py", "('labels' <-> 'py':*)"),
        ("retry -cache", "('retry':*) & !('cache':*)"),
        ('retry -"by cache"', "('retry':*) & !('by' <-> 'cache')"),
        ('"left open', "('left' <-> 'open')"),
        ("a b", "('a') & ('b')"),
    ],
)
def test_questions(asked: str, query: str) -> None:
    question = question_of(asked)
    assert question is not None
    assert question.query == query


@pytest.mark.parametrize("asked", ["", "  ", "-", '""', "-retry", "!!! ***"])
def test_nothing_is_asked(asked: str) -> None:
    assert question_of(asked) is None


def test_terms_are_limited() -> None:
    question = question_of(" ".join(f"word{n}" for n in range(TERMS + 5)))
    assert question is not None
    assert len(question.marked) == TERMS


@given(st.text(alphabet="ab \n", max_size=60).map(lambda text: text * 400), st.integers(1, 4))
def test_pieces_are_the_text(text: str, most: int) -> None:
    pieces = list(pieces_of(text, most))
    joined = "".join(piece for piece, _ in pieces)
    assert text.startswith(joined)
    assert all(len(piece) <= PIECE for piece, _ in pieces)
    assert [cut for _, cut in pieces[:-1]] == [False] * (len(pieces) - 1)
    assert pieces[-1][1] == (joined != text)


def test_a_piece_ends_between_words() -> None:
    text = "word " * (PIECE // 5 + 100)
    first = next(pieces_of(text, 3))[0]
    assert first.endswith("word ")


def test_an_excerpt_shows_the_first_word_and_marks_all() -> None:
    text = "x " * 500 + "The retry came back, and RETRYING helped. Not pretry." + " y" * 500
    line, marks = excerpt(text, ("retry",))
    assert [line[start:end] for start, end in marks] == ["retry", "RETRYING"]
    assert line.startswith("…")
    assert line.endswith("…")
    assert len(line) == LENGTH + 2
    assert marks[0][0] <= BEFORE + 2


def test_an_excerpt_of_a_short_text_is_the_text() -> None:
    assert excerpt("Ship\n  on Thursday", ("thursday",)) == ("Ship on Thursday", [(8, 16)])


def test_the_text_of_an_entry_is_what_people_and_models_wrote() -> None:
    model = [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Perhaps the cache.", "signature": "c2ln"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "pytest -q"}},
                {"type": "image", "source": {"type": "base64", "data": "A" * 5000}},
            ],
        }
    ]
    text = text_of(model=json.dumps(model), data='{"text": "not read"}')
    assert text == "Perhaps the cache.\nI look.\nBash\npytest -q"
    assert text_of(model="", data='{"title": "Plan", "bytes": 3}') == "Plan"
    assert text_of(model="[", data="") == ""

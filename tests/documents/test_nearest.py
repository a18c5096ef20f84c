"""The facts that a refusal of the append path adds (D5)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.edits import Edit, EditError, apply_edits
from documents.limits import MAX_LENGTH
from documents.nearest import MAX_LINES, MAX_QUERY, refusal_facts

TEXT = "# Retries\n\nThe bucket refills\nthat refills at 40 a second; the ten others are left\n\nEnd.\n"


def facts(text: str, edits: list[Edit]) -> dict[str, object]:
    with pytest.raises(EditError) as caught:
        apply_edits(text, edits)
    return refusal_facts(text, edits, caught.value)


def test_an_ambiguous_quote_is_told_its_lines() -> None:
    assert facts("x\na x\n\nx\n", [Edit("x", "y")]) == {"lines": [1, 2, 4]}


def test_lines_are_those_of_the_running_text() -> None:
    edits = [Edit("top\n", "one\ntwo\nthree\n"), Edit("x", "y")]
    assert facts("top\nx\nx\n", edits) == {"lines": [4, 5]}


def test_at_most_twenty_lines_are_told() -> None:
    assert facts("x\n" * 50, [Edit("x", "")]) == {"lines": list(range(1, MAX_LINES + 1))}


def test_an_absent_quote_is_told_the_nearest_line() -> None:
    told = facts(TEXT, [Edit("that refills at 50 a second", "")])
    assert told == {
        "looked_for": "that refills at 50 a second",
        "nearest": {"line": 4, "text": "that refills at 40 a second; the ten others are left", "cut": False},
    }


def test_of_several_lines_the_first_missing_one_is_looked_for() -> None:
    told = facts(TEXT, [Edit("# Retries\n\nThe bucket is refilled\nthat refills", "")])
    assert told["looked_for"] == "The bucket is refilled"
    assert told["nearest"] == {"line": 3, "text": "The bucket refills", "cut": False}


def test_a_place_in_a_long_line_is_found_and_shown_cut() -> None:
    line = "a b c d e f g h " * 2_000 + "the nedle is here " + "i j k l m n o p " * 2_000
    told = facts("first\n" + line, [Edit("the needle is here", "")])
    nearest = told["nearest"]
    assert isinstance(nearest, dict)
    assert nearest["line"] == 2
    assert "the nedle is here" in nearest["text"]
    assert (len(nearest["text"]), nearest["cut"]) == (MAX_QUERY, True)


def test_nothing_alike_is_said_to_be_nothing() -> None:
    assert facts(TEXT, [Edit("zzz zzz zzz", "")])["nearest"] is None
    assert facts(TEXT, [Edit("\t\n \t", "")])["nearest"] is None


def test_other_refusals_have_nothing_to_add() -> None:
    assert facts(TEXT, [Edit("", "x")]) == {}
    assert refusal_facts(TEXT, [], EditError("no_edits", "…")) == {}


WORST = {
    "line breaks": "\n" * MAX_LENGTH,
    "tiny lines": "a\n" * (MAX_LENGTH // 2),
    "one line": "a" * MAX_LENGTH,
    "both": "a\n" * (MAX_LENGTH // 4) + "b" * (MAX_LENGTH // 2),
}


@pytest.mark.parametrize("name", WORST)
@pytest.mark.parametrize("old", ["xy", "hello", "z" * 300, "a\n" * 19 + "zz"], ids=len)
def test_the_search_is_bounded(name: str, old: str) -> None:
    began = time.process_time()
    facts(WORST[name], [Edit(old, "")])
    assert time.process_time() - began < 2  # of the processor: about 0.2 s


LETTERS = st.sampled_from(["a", "b", "ab", "\n", "é", "😀"])


@given(st.lists(LETTERS, max_size=20).map("".join), st.lists(LETTERS, min_size=1, max_size=6).map("".join))
def test_every_refusal_can_be_explained(text: str, old: str) -> None:
    edits = [Edit(old, "")]
    try:
        apply_edits(text, edits)
        return
    except EditError as error:
        told = refusal_facts(text, edits, error)
    lines = text.split("\n")
    if "lines" in told:
        numbers = told["lines"]
        assert isinstance(numbers, list)
        assert all(old.split("\n")[0] in lines[number - 1] for number in numbers)
    else:
        nearest = told["nearest"]
        assert nearest is None or (isinstance(nearest, dict) and lines[nearest["line"] - 1] == nearest["text"])

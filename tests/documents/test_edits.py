"""The applier (D1-D4): vectors, the twin, and time."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.edits import Edit, walk_edits
from tests.documents.twin import Twin, outcome

VECTORS = Path(__file__).parents[1] / "vectors"
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def twin() -> Iterator[Twin]:
    with Twin() as twin:
        yield twin


def read_vectors() -> list[dict[str, Any]]:
    lines = (VECTORS / "edits-random.jsonl").read_bytes().rstrip(b"\n").split(b"\n")
    cases: list[dict[str, Any]] = json.loads((VECTORS / "edits.json").read_bytes())
    return cases + [json.loads(line) for line in lines]


def test_both_appliers_pass_every_vector(twin: Twin) -> None:
    cases = read_vectors()
    assert len(cases) == 1_551
    for case in cases:
        edits = [Edit(**edit) for edit in case["edits"]]
        expected = {key: case[key] for key in ("result", "error", "message") if key in case}
        assert outcome(case["text"], edits) == expected, case["name"]
        assert twin.outcome(case["text"], edits) == expected, case["name"]


def one_encoding(text: str) -> str:
    """A pair of surrogates as the one character it is: JSON has no way to tell the two apart."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


# Few letters, so that most quotes match, and often more than once; and what goes wrong between two languages.
LETTERS = [
    "a",
    "b",
    "ab",
    "\n",
    "\r\n",
    " ",
    '"',
    "\\",
    "\x1f",
    "\x7f",
    "\u2028",
    "é",
    "e\u0301",
    "😀",
    "😁",
    "👩‍👩‍👧",
]
texts = st.lists(st.sampled_from(LETTERS), max_size=14).map("".join)
strings = st.one_of(
    texts,
    st.lists(st.sampled_from([*LETTERS, "\0", "\ud83d", "\ude00"]), max_size=5).map("".join).map(one_encoding),
    st.text(st.characters(exclude_categories=[]), max_size=200).map(one_encoding),
)


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    text = draw(texts)
    edits: list[Edit] = []
    running = text
    for _ in range(draw(st.integers(0, 4))):
        if running and draw(st.booleans()):  # a quote of the running text
            start = draw(st.integers(0, len(running) - 1))
            old = running[start : start + draw(st.integers(1, 12))]
        else:
            old = draw(strings)
        edits.append(Edit(old, draw(strings)))
        running = outcome(text, edits).get("result", running)
    return text, edits


@settings(max_examples=400, deadline=None)
@given(batches())
def test_the_twin_answers_as_the_server_does(twin: Twin, batch: tuple[str, list[Edit]]) -> None:
    assert twin.outcome(*batch) == outcome(*batch)


@given(batches())
def test_an_accepted_batch_replaced_exactly_one_place_each_time(batch: tuple[str, list[Edit]]) -> None:
    text, edits = batch
    expected = outcome(text, edits)
    if "error" in expected:  # the edits before the refused one apply; the batch does not
        assert "result" in outcome(text, edits[: expected["error"]["ordinal"] - 1])
        return
    for step in walk_edits(text, edits):
        assert text.count(step.edit.old_string) == 1
        assert text[step.at :].startswith(step.edit.old_string)
        assert step.text == text.replace(step.edit.old_string, step.edit.new_string)
        text = step.text
    assert expected == {"result": text}


# What makes a search by trying every place quadratic (D3): nearly a match at each of a million places.
PATHOLOGICAL = {
    "late difference": ("a" * 2 * MIB, "a" * (MIB - 1) + "b"),
    "early difference": ("a" * 2 * MIB, "b" + "a" * (MIB - 1)),
    "difference in the middle": ("a" * 2 * MIB, "a" * 500_000 + "b" + "a" * 500_000),
    "short and late": ("a" * 2 * MIB, "a" * 63 + "b"),
    "as long as the text": ("a" * 2 * MIB, "a" * (2 * MIB - 1) + "b"),
    "period": ("ab" * MIB, "ab" * 400_000 + "aa"),
    "beyond the first plane": ("😀😁" * (MIB // 2), "😀😁" * 200_000 + "😀😀"),
    "wide needle in a narrow text": ("a" * 2 * MIB, "a" * MIB + "😀"),
}


@pytest.mark.parametrize("name", PATHOLOGICAL)
def test_no_text_makes_the_search_quadratic(name: str, twin: Twin) -> None:
    text, old = PATHOLOGICAL[name]
    for apply in (outcome, twin.outcome):
        began = time.perf_counter()
        assert apply(text, [Edit(old, "")])["error"]["code"] == "absent"
        # Linear takes some ten milliseconds, quadratic a minute; the bound is for a busy machine.
        assert time.perf_counter() - began < 20


def test_counting_many_matches_is_linear_too(twin: Twin) -> None:
    text = "ab" * MIB
    for apply in (outcome, twin.outcome):
        began = time.perf_counter()
        assert apply(text, [Edit("ab", "")])["error"]["matches"] == MIB
        assert time.perf_counter() - began < 20

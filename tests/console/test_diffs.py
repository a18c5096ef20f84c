"""Diffs tell the truth about both texts, whatever they hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.diffs import COMPARED_LINES, CONTEXT, Diff, diff, patch

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  x = 1", "  x = 2"]), max_size=30)


def _side(found: Diff, mark: str) -> dict[int, str]:
    rows = [row for row in found.rows if row.kind in {"same", mark}]
    return {(row.old if mark == "del" else row.new) or 0: "".join(text for text, _ in row.parts) for row in rows}


@given(LINES, LINES)
def test_every_row_stands_in_its_text(before: list[str], after: list[str]) -> None:
    found = diff("\n".join(before), "\n".join(after), rows=1000)
    old, new = "\n".join(before).splitlines(), "\n".join(after).splitlines()
    for number, text in _side(found, "del").items():
        assert old[number - 1] == text
    for number, text in _side(found, "add").items():
        assert new[number - 1] == text
    assert len(old) - found.removed == len(new) - found.added
    kept = [row for row in found.rows if row.kind == "gap"]
    hidden = sum(int(row.parts[0][0]) for row in kept)
    ends = len(old) - found.removed - hidden - sum(row.kind == "same" for row in found.rows)
    assert ends >= 0


def test_marks_within_a_line() -> None:
    found = diff("    step = STEPS[min(attempt, 3)]", "    step = STEPS[attempt]")
    removed, added = found.rows
    assert ("min(", True) in removed.parts
    assert (removed.kind, added.kind) == ("del", "add")
    assert all(not changed for _, changed in diff("abc", "xyz").rows[0].parts)


def test_context_stands_around_changes_only() -> None:
    before = [f"line {n}" for n in range(100)]
    after = [*before]
    after[50] = "changed"
    found = diff("\n".join(before), "\n".join(after))
    same = [row.old for row in found.rows if row.kind == "same"]
    assert same == [48, 49, 50, 52, 53, 54]
    assert len(same) == 2 * CONTEXT


def test_rows_beyond_the_limit_are_counted() -> None:
    found = diff("", "\n".join("x" * 50), rows=20)
    assert (len(found.rows), found.left_out, found.added) == (20, 30, 50)


@pytest.mark.timeout(10)
def test_huge_texts_are_bounded() -> None:
    before = "\n".join(str(n % 7) for n in range(60_000))
    after = "\n".join(str(n % 5) for n in range(60_000))
    found = diff(before, after)
    assert found.left_out > 100_000
    assert COMPARED_LINES < 60_000
    assert diff("ab" * 400_000, "ba" * 400_000).added == 1


def test_hunks_keep_the_numbers_of_the_file() -> None:
    found = patch([{"oldStart": 21, "newStart": 25, "lines": [" a", "-b", "+c", "\\ No newline at end of file"]}])
    assert [(row.kind, row.old, row.new) for row in found.rows] == [
        ("same", 21, 25),
        ("del", 22, None),
        ("add", None, 26),
    ]
    assert (found.added, found.removed) == (1, 1)
    assert patch(["x", {}, {"lines": [1]}]).rows == ()

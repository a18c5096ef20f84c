"""Who wrote what (D15)."""

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from documents.authorship import BLOCK, Authors, Range, Run, bounded_diff, fold_authors
from documents.edits import Edit, EditError, apply_edits
from documents.limits import MAX_LENGTH

WORDS = ["a", "b", "ab", "the ", "quick ", "\n", "\r\n", "é", "😀"]
texts = st.lists(st.sampled_from(WORDS), max_size=30).map("".join)


def authored(text: str, runs: list[Run]) -> list[tuple[str, int]]:
    """The text cut into what each actor wrote."""
    parts, at = [], 0
    for actor, length in runs:
        parts.append((text[at : at + length], actor))
        at += length
    assert at == len(text)
    return parts


@given(texts, texts)
def test_a_diff_says_all_that_changed(old: str, new: str) -> None:
    at_old = at_new = 0
    rebuilt = ""
    for range_ in bounded_diff(old, new):
        assert old[at_old : range_.old_from] == new[at_new : range_.new_from]
        assert range_.old_to > range_.old_from or range_.new_to > range_.new_from
        rebuilt += old[at_old : range_.old_from] + new[range_.new_from : range_.new_to]
        at_old, at_new = range_.old_to, range_.new_to
    assert rebuilt + old[at_old:] == new


def test_a_quoted_line_keeps_its_author_around_the_typed_letter() -> None:
    text = "one\nthe quick fox\n"
    runs = fold_authors([(1, len(text))], text, [Edit("the quick fox", "the quickest fox")], 2)
    assert authored("one\nthe quickest fox\n", runs) == [("one\nthe quick", 1), ("est", 2), (" fox\n", 1)]


def test_letters_shared_by_chance_are_not_kept() -> None:
    assert bounded_diff("stone", "tower") == [Range(0, 5, 0, 5)]
    assert bounded_diff("foo(a, b)", "bar(a, c)") == [Range(0, 3, 0, 3), Range(7, 8, 7, 8)]


def test_a_rewritten_passage_keeps_its_unchanged_middle() -> None:
    old = "\n".join(f"line {n} of the passage" for n in range(1_000))
    new = old.replace("line 10 ", "row 10 ").replace("line 900 ", "row 900 ")
    assert [old[r.old_from : r.old_to] for r in bounded_diff(old, new)] == ["line", "line"]


def test_a_deletion_leaves_the_neighbours() -> None:
    assert fold_authors([(1, 3), (2, 3), (1, 3)], "aaabbbccc", [Edit("bbb", "")], 3) == [(1, 6)]


def test_a_change_that_changes_nothing_takes_nothing() -> None:
    assert fold_authors([(1, 3)], "abc", [Edit("b", "b")], 2) == [(1, 3)]


@given(st.data())
def test_runs_always_cover_the_text(data: st.DataObject) -> None:
    text = data.draw(texts.filter(bool))
    authors = Authors([(0, len(text))])
    for actor in range(1, data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, max(0, len(text) - 1)))
        old = text[start : start + data.draw(st.integers(1, 12))]
        edits = [Edit(old, data.draw(texts))]
        try:
            after = apply_edits(text, edits)
        except EditError:
            continue
        before = authors.runs()
        assert authors.fold(text, edits, actor) == after
        runs = authors.runs()
        assert sum(length for _, length in runs) == len(after)
        assert all(length > 0 for _, length in runs)
        assert all(one[0] != next_[0] for one, next_ in pairwise(runs))
        assert runs == fold_authors(before, text, edits, actor)
        text = after


@given(st.lists(st.tuples(st.integers(0, 4 * BLOCK), st.integers(0, 3), st.integers(0, 3)), max_size=12))
def test_splicing_many_blocks_is_splicing_a_list(splices: list[tuple[int, int, int]]) -> None:
    runs = [(n % 3, 1 + n % 2) for n in range(3 * BLOCK)]
    plain = [actor for actor, length in runs for _ in range(length)]
    authors = Authors(runs)
    for at, removed, added in splices:
        at = min(at, len(plain))
        end = min(at + removed, len(plain))
        authors.replace(at, end, [(9, added)])
        plain[at:end] = [9] * added
    assert [actor for actor, length in authors.runs() for _ in range(length)] == plain


def test_the_diff_is_bounded_on_two_mi() -> None:
    half = MAX_LENGTH // 2
    for old, new in (
        ("a\n" * half, "b\na\n" * (half // 2)),
        ("ab" * half, "ba" * half),
        ("".join(f"{n} left\n" for n in range(100_000)), "".join(f"{n} right\n" for n in range(100_000))),
    ):
        began = time.process_time()
        assert bounded_diff(old, new)
        assert time.process_time() - began < 2  # of the processor: about 0.1 s


def test_a_thousand_edits_over_a_hundred_thousand_runs() -> None:
    text = "".join(f"<{n:04x}>" for n in range(40_000))
    runs = [(n % 5, 2) for n in range(120_000)]
    edits = [Edit(f"<{n:04x}>", f"<{n:04x}!>") for n in range(0, 40_000, 40)]
    began = time.process_time()
    after = fold_authors(runs, text, edits, 9)
    assert time.process_time() - began < 5  # of the processor: about 0.4 s
    assert sum(length for actor, length in after if actor == 9) == 1_000

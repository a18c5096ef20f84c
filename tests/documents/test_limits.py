"""What a batch and a document may weigh (D6): each limit just kept, and just passed."""

import pytest

from documents.edits import Edit, EditError
from documents.limits import (
    MAX_EDITS,
    MAX_LENGTH,
    MAX_STRINGS,
    MAX_WORK,
    apply_batch,
    check_batch,
    first_text,
)


def refusal(text: str, edits: list[Edit]) -> EditError:
    with pytest.raises(EditError) as caught:
        apply_batch(text, edits)
    assert caught.value.message == str(caught.value)
    return caught.value


def test_a_batch_has_between_one_and_a_thousand_edits() -> None:
    flip = [Edit("a", "b"), Edit("b", "a")]
    assert apply_batch("a", flip * (MAX_EDITS // 2)) == "a"
    error = refusal("a", flip * (MAX_EDITS // 2) + flip[:1])
    assert (error.code, error.facts) == ("too_many_edits", {"edits": 1_001, "limit": 1_000})
    assert refusal("a", []).code == "no_edits"


def test_any_text_to_any_text_is_one_legal_batch() -> None:
    old, new = "a" * MAX_LENGTH, "😀" * MAX_LENGTH
    assert apply_batch(old, [Edit(old, new)]) == new
    error = refusal(old, [Edit(old, new + "b")])
    assert (error.code, error.facts) == ("batch_too_long", {"length": MAX_STRINGS + 1, "limit": MAX_STRINGS})


def test_a_document_has_at_most_two_mi_code_points() -> None:
    text = "b" + "a" * (MAX_LENGTH - 2)
    assert len(apply_batch(text, [Edit("b", "bb")])) == MAX_LENGTH
    error = refusal(text, [Edit("b", "bbb")])
    assert (error.code, error.facts) == ("document_too_long", {"length": MAX_LENGTH + 1, "limit": MAX_LENGTH})


def test_a_document_is_never_left_empty() -> None:
    assert apply_batch("all", [Edit("all", "\n")]) == "\n"
    assert refusal("all", [Edit("all", "")]).code == "would_be_empty"


def test_edits_times_length_is_bounded() -> None:
    flip = [Edit("b", "c"), Edit("c", "b")]
    length = MAX_WORK // 512
    assert len(apply_batch("b" + "a" * (length - 1), flip * 256)) == length
    error = refusal("b" + "a" * length, flip * 256)
    assert error.code == "too_much_work"
    assert error.facts == {"edits": 512, "length": length + 1, "work": MAX_WORK + 512, "limit": MAX_WORK}


def test_a_text_that_grows_within_the_batch_is_work_too() -> None:
    grow, flip = Edit("b", "b" + "a" * MAX_LENGTH), [Edit("b", "c"), Edit("c", "b")]
    check_batch(1, [grow, *flip * 64])
    with pytest.raises(EditError) as caught:
        check_batch(1, [grow, *flip * 65])
    assert caught.value.code == "too_much_work"


def test_a_limit_is_refused_before_anything_is_searched() -> None:
    assert refusal("a" * MAX_LENGTH, [Edit("absent", "")] * MAX_EDITS).code == "too_much_work"
    assert refusal("a", [Edit("absent", "")]).code == "absent"


def test_the_text_of_a_new_document() -> None:
    assert first_text("") == "\n"
    assert first_text("a\r\n") == "a\r\n"
    assert first_text("a" * MAX_LENGTH) == "a" * MAX_LENGTH
    for text, code in (
        ("a" * (MAX_LENGTH + 1), "document_too_long"),
        ("\0", "invalid_text"),
        ("\ud83d", "invalid_text"),
    ):
        with pytest.raises(EditError) as caught:
            first_text(text)
        assert caught.value.code == code

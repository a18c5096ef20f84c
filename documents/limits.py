"""What a batch and a document may weigh (D6): the append path asks, the fold does not.

All lengths are code points. Each refusal is an `EditError` with the limit and the actual figure as facts.
"""

from collections.abc import Sequence

from documents.edits import Edit, EditError, apply_edits, is_valid_text

MAX_EDITS = 1_000
"""Edits of one batch: a rewritten document is a handful; more is a program that should send a whole text."""

MAX_LENGTH = 2 * 1024 * 1024
"""Code points of a document: about two thousand pages, and what an editor in a browser still carries."""

MAX_STRINGS = 2 * MAX_LENGTH
"""Code points of all strings of a batch together, so that any text to any text is one legal batch."""

MAX_WORK = 256 * 1024 * 1024
"""Edits times length: each edit reads the whole text, and this much is read well within a second."""

EMPTY_DOCUMENT = "\n"
"""What a new document without text holds: an empty one could never be edited again."""


def apply_batch(text: str, edits: Sequence[Edit]) -> str:
    """The text after a batch that a client sent. Raises `EditError` for a limit or as `apply_edits` does."""
    check_batch(len(text), edits)
    result = apply_edits(text, edits)
    check_result(result)
    return result


def check_batch(length: int, edits: Sequence[Edit]) -> None:
    """Refuses what is too much to try on a text of `length`, before any search: a refusal is cheap."""
    if not edits:
        raise EditError(
            "no_edits",
            "The batch has no edits, so there is nothing to record. Send at least one.",
            edits=0,
            limit=MAX_EDITS,
        )
    if len(edits) > MAX_EDITS:
        raise EditError(
            "too_many_edits",
            f"The batch has {len(edits)} edits; at most {MAX_EDITS} are taken at once."
            " Send them in several batches, or replace a larger passage with one edit.",
            edits=len(edits),
            limit=MAX_EDITS,
        )
    strings = sum(len(edit.old_string) + len(edit.new_string) for edit in edits)
    if strings > MAX_STRINGS:
        raise EditError(
            "batch_too_long",
            f"The old and new strings of the batch have {strings} characters together; at most {MAX_STRINGS}"
            " are taken at once. Quote less around each place, or send several batches.",
            length=strings,
            limit=MAX_STRINGS,
        )
    work = max(len(edits) * length, _grown(edits))
    if work > MAX_WORK:
        raise EditError(
            "too_much_work",
            f"{len(edits)} edits on a document of {length} characters are too much for one batch: edits times"
            f" characters may be at most {MAX_WORK}. Send the edits in several batches.",
            edits=len(edits),
            length=length,
            work=work,
            limit=MAX_WORK,
        )


def _grown(edits: Sequence[Edit]) -> int:
    """What the batch's growth adds to the work: a first edit may make a short text long for the others."""
    growth = work = 0
    for edit in edits:
        work += max(growth, 0)
        growth += len(edit.new_string) - len(edit.old_string)
    return work


def check_result(text: str) -> None:
    """Refuses a document that no one could edit again, or that is longer than a document may be."""
    if not text:
        raise EditError(
            "would_be_empty",
            "The batch would leave the document empty, and an empty one could never be edited again."
            " Leave at least a line break.",
        )
    if len(text) > MAX_LENGTH:
        raise EditError(
            "document_too_long",
            f"The document would have {len(text)} characters; at most {MAX_LENGTH} are kept."
            " Shorten it, or begin another document.",
            length=len(text),
            limit=MAX_LENGTH,
        )


def first_text(text: str) -> str:
    """The text that a new document begins with. Raises `EditError` if no document can hold it."""
    if not is_valid_text(text):
        raise EditError(
            "invalid_text",
            "The text holds an unpaired surrogate or U+0000, which no document can hold. Send valid text.",
            field="text",
        )
    text = text or EMPTY_DOCUMENT
    check_result(text)
    return text

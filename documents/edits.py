"""The edit language of documents: replace-exactly-once, in atomic batches.

Pure: no Django, no database, no clock. Its twin in the browser is `static/documents/applier.js`; both pass
the same vectors (D3). Strings are measured in code points. What a batch may weigh is in `limits.py`; what a
refusal adds for its reader is in `nearest.py`.
"""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

PREVIEW = 80
"""Code points of `old_string` that a refusal quotes: enough to recognise it, short enough for a log line."""


class Edit(msgspec.Struct, frozen=True):
    """One replacement: `old_string` must occur exactly once, and becomes `new_string`."""

    old_string: str
    new_string: str


class EditError(Exception):
    """A batch was refused, and nothing of it was applied.

    `code` is a closed set (D2: `empty_old_string`, `invalid_text`, `absent`, `ambiguous`; D6 adds those of
    `limits.py`), `facts` are what a program needs to act on it, `message` is the sentence for a reader.
    """

    def __init__(self, code: str, message: str, **facts: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts = facts


class Step(NamedTuple):
    """One applied edit: where it matched in the text before it (code points), and the text after it."""

    at: int
    edit: Edit
    text: str


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text after the whole batch (D1), in linear time for each edit (D3).

    Raises `EditError` for the first edit that cannot apply, with its one-based `ordinal` (D2).
    """
    for step in walk_edits(text, edits):
        text = step.text
    return text


def walk_edits(text: str, edits: Sequence[Edit]) -> Iterator[Step]:
    """The batch edit by edit, for callers that need the places too. Raises as `apply_edits` does."""
    for ordinal, edit in enumerate(edits, start=1):
        at = find_place(text, edit, ordinal)
        text = text[:at] + edit.new_string + text[at + len(edit.old_string) :]
        yield Step(at, edit, text)


def find_place(text: str, edit: Edit, ordinal: int) -> int:
    """Where the edit's `old_string` occurs, if exactly once; occurrences are disjoint, from the left (D1)."""
    old = edit.old_string
    if not old:
        raise EditError(
            "empty_old_string",
            f"Edit {ordinal}: old_string is empty, so it names no place in the document."
            " Quote the exact text to replace.",
            ordinal=ordinal,
        )
    for field, string in (("old_string", old), ("new_string", edit.new_string)):
        if not is_valid_text(string):
            raise EditError(
                "invalid_text",
                f"Edit {ordinal}: {field} holds an unpaired surrogate or U+0000, which no document can hold."
                " Send valid text.",
                ordinal=ordinal,
                field=field,
            )
    at = text.find(old)
    if at >= 0 and text.find(old, at + len(old)) < 0:
        return at
    preview = old[:PREVIEW]
    quoted = json.dumps(preview, ensure_ascii=False)
    if at < 0:
        raise EditError(
            "absent",
            f"Edit {ordinal}: old_string does not occur in the document (searched for {quoted})."
            " It may have changed since you read it: read it again and quote the exact text.",
            ordinal=ordinal,
            preview=preview,
        )
    matches = text.count(old)
    raise EditError(
        "ambiguous",
        f"Edit {ordinal}: old_string occurs {matches} times (searched for {quoted}),"
        " so it names no single place. Quote more of the text around it.",
        ordinal=ordinal,
        matches=matches,
        preview=preview,
    )


def is_valid_text(string: str) -> bool:
    """Whether a document can hold it: Unicode scalar values, and no U+0000, which PostgreSQL refuses."""
    if "\0" in string:
        return False
    if string.isascii():
        return True
    try:
        string.encode()  # the fastest search for a surrogate that Python has
    except UnicodeEncodeError:
        return False
    return True

"""`edit_file` (A2): one exactly-once edit by the documents' own applier (D1), written beside the file and put in its place."""

import difflib
import hashlib
import os
import secrets
import stat
from dataclasses import dataclass

from documents.edits import Edit, EditError, apply_edits, is_valid_text
from lineage.agent.failures import ToolFailed
from lineage.agent.folder.confine import Missing, Place, open_file, place_of

FILE_BYTES = 8 * 1024 * 1024
"""Bytes of a file that is edited: the text is held whole, several times over."""

PREVIEW_CHARACTERS = 2 * 1024 * 1024
"""Characters of a diff that are kept for whoever decides: a model cannot write as much in one call, but one line of a file may
have more. A longer one is cut, and says of how many."""


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What an edit would do. `hash` is the SHA-256 of the file as it stands, "" where there is none yet."""

    path: str
    diff: str
    characters: int  # of the whole diff: more than `diff` has where that is cut
    hash: str
    added: int
    removed: int


def preview_edit(root: str, path: str, old_string: str, new_string: str) -> Preview:
    """The edit as a unified diff, nothing written. Raises `ToolFailed` when it cannot apply."""
    try:
        with place_of(root, path) as place:
            before = _read(place)
    except Missing:  # the edit itself will make the folders on the way to a new file
        if old_string:
            raise
        before = None
    after = _edited(path, before, old_string, new_string)
    old = "" if before is None else before
    lines = list(
        difflib.unified_diff(
            _lines(old), _lines(after), f"a/{path}" if before is not None else "/dev/null", f"b/{path}"
        )
    )
    body = [line for line in lines[2:] if not line.startswith("@@")]
    diff = "".join(lines)
    return Preview(
        path=path,
        diff=diff[:PREVIEW_CHARACTERS],
        characters=len(diff),
        hash=_hash(before),
        added=sum(line.startswith("+") for line in body),
        removed=sum(line.startswith("-") for line in body),
    )


def edit_file(root: str, path: str, old_string: str, new_string: str, *, expected: str | None = None) -> str:
    """Write the edit; answers a sentence. `expected` is the hash that was approved: a file changed since raises `FileChanged`.

    An empty `old_string` creates a file. Raises `ToolFailed`.
    """
    with place_of(root, path, making=not old_string) as place:
        before = _read(place)
        if expected is not None and _hash(before) != expected:
            raise FileChanged(f"{path} changed after the edit was shown.")
        after = _edited(path, before, old_string, new_string)
        _replace(place, after.encode())
    return f"{path} was created." if before is None else f"{path} was edited."


class FileChanged(ToolFailed):
    """The file is no longer the one that was approved: it has to be asked anew (A3)."""


def _edited(path: str, before: str | None, old_string: str, new_string: str) -> str:
    if not old_string:
        if before is not None:
            raise ToolFailed(
                f"{path} exists already, and an empty old_string only creates new files. Quote what to replace."
            )
        if not is_valid_text(new_string):
            raise ToolFailed("new_string holds U+0000 or half of a surrogate pair, which a text file cannot hold.")
        return new_string
    if before is None:
        raise ToolFailed(f"There is no file {path} to edit. Use an empty old_string to create it.")
    try:
        return apply_edits(before, [Edit(old_string, new_string)])
    except EditError as refusal:
        raise ToolFailed(f"{path} was not changed. {refusal.message}") from None


def _read(place: Place) -> str | None:
    if place.name == ".":
        raise ToolFailed(f"{place.shown} is a folder, not a file.")
    if place.stat() is None:
        return None
    with open_file(place) as file, os.fdopen(os.dup(file), "rb") as opened:
        content = opened.read(FILE_BYTES + 1)
    if len(content) > FILE_BYTES:
        raise ToolFailed(f"{place.shown} is larger than {FILE_BYTES} bytes, too large to edit here. Use run_command.")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ToolFailed(f"{place.shown} is not UTF-8 text, so it cannot be edited here. Use run_command.") from None
    if "\0" in text:
        raise ToolFailed(f"{place.shown} is not text: it holds zero bytes.")
    return text


def _replace(place: Place, content: bytes) -> None:
    """Write beside it, sync, put in its place: no reader sees half a file, and a link that comes meanwhile is not followed."""
    draft = f".{place.name[:100]}.{secrets.token_hex(6)}.draft"
    looked = place.stat()
    mode = stat.S_IMODE(looked.st_mode) if looked is not None else 0o666
    try:
        file = os.open(
            draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=place.folder
        )
    except OSError as error:
        raise ToolFailed(f"{place.shown} could not be written: {error.strerror}.") from None
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(content)
            opened.flush()
            if looked is not None:
                os.fchmod(opened.fileno(), mode)
            os.fsync(opened.fileno())
        os.rename(draft, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except OSError as error:
        os.unlink(draft, dir_fd=place.folder)
        raise ToolFailed(f"{place.shown} could not be written: {error.strerror}.") from None


def _hash(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def _lines(text: str) -> list[str]:
    """Lines with their LF; a last one without it says so, as diffs do."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last + "\n\\ No newline at end of file\n"] if last else [])

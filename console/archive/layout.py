"""The file of an export: a zip with `manifest.json`, `tables/NAME.jsonl`, `attachments/NAME`. What may be in it, and how large."""

import re
from pathlib import Path

import msgspec

from documents.attachments.limits import EXTRACTION_CHARS, UPLOAD_BYTES
from documents.attachments.names import is_issued

FORMAT = 1  # grows when a console could no longer read the file of an older one without knowing

MANIFEST = "manifest.json"
ACTORS = "actor"
MANIFEST_BYTES = 1024 * 1024
LINE_BYTES = 128 * 1024 * 1024  # one row: the largest text of a document, each character escaped twice
SIDECAR_BYTES = EXTRACTION_CHARS * 4 + 1024 * 1024  # a code point has at most four bytes; then the line of facts

_SIDECAR = ".extracted"
_TABLE = re.compile(r"tables/([a-z]{1,40})\.jsonl")


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the manifest says of one table: `first` and `last` are its lowest and highest number, 0 where it has none."""

    columns: list[str]
    rows: int
    bytes: int
    first: int = 0
    last: int = 0


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the file says of itself. Unknown keys are let pass: `format` says what must be understood."""

    format: int
    root: int
    title: str
    exported: str
    tables: dict[str, Part]
    files: int  # attachments and sidecars


def table_place(name: str) -> str:
    return f"tables/{name}.jsonl"


def file_place(name: str) -> str:
    return f"attachments/{name}"


def table_at(place: str) -> str | None:
    """The table that lies there by the form of the name, or none."""
    found = _TABLE.fullmatch(place)
    return found[1] if found else None


def file_at(place: str) -> tuple[str, str, int] | None:
    """(attachment, name of the file, bytes that it may have) by the form of the name; nothing else is ever a path here."""
    folder, _, name = place.partition("/")
    attachment = name.removesuffix(_SIDECAR)
    if folder != "attachments" or not is_issued(attachment):
        return None
    return attachment, name, UPLOAD_BYTES if name == attachment else SIDECAR_BYTES


def files_of(folder: Path, attachment: str) -> list[Path]:
    """The file of an attachment and its sidecar, as far as they are there."""
    paths = (folder / attachment, folder / f"{attachment}{_SIDECAR}")
    return [path for path in paths if path.is_file()]

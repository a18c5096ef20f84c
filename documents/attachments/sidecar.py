"""Sidecars: the one result of an extraction, as a file beside the original (D18).

First line: one JSON object. Then the text, UTF-8, exactly as extracted: read as bytes, since text mode would translate line
ends and shift every offset. Offsets count code points of the text; the first line does not count.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from documents.attachments.limits import INDEX_STEP

EXTRACTED, UNREADABLE = "extracted", "unreadable"
NO_REASON = "no reason given"
_META_BYTES = 64 * 1024  # a first line longer than this is no sidecar of ours


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. `index[i]` is the byte, from the text's begin, of code point `i * INDEX_STEP`."""

    status: str
    chars: int
    truncated: bool
    reason: str | None
    media_type: str
    sha256: str
    index: tuple[int, ...] = ()


class Sidecar(msgspec.Struct, frozen=True):
    """An opened sidecar: what its first line says, and where its text begins in the file."""

    path: Path
    meta: Meta
    start: int

    def read(self, offset: int, limit: int) -> str:
        """At most `limit` code points from code point `offset` on. Reads at most `INDEX_STEP + limit` code points."""
        block = min(offset // INDEX_STEP, len(self.meta.index) - 1)
        if block < 0:
            return ""
        skip = offset - block * INDEX_STEP
        with self.path.open("rb") as file:
            file.seek(self.start + self.meta.index[block])
            raw = file.read((skip + limit) * 4)  # a code point has at most four bytes
        return raw.decode("utf-8", "ignore")[skip : skip + limit]  # a last one cut in two lies beyond the page


def sidecar_path(folder: Path, name: str) -> Path:
    """Where the sidecar of an attachment lies."""
    return folder / f"{name}.extracted"


def open_sidecar(folder: Path, name: str) -> Sidecar | None:
    """The sidecar, or none while there is none: the extraction is pending."""
    path = sidecar_path(folder, name)
    try:
        with path.open("rb") as file:
            line = file.readline(_META_BYTES)
    except FileNotFoundError:
        return None
    return Sidecar(path, msgspec.json.decode(line, type=Meta), len(line))


def write_sidecar(folder: Path, name: str, meta: Meta, text: Path | None = None) -> Meta:
    """Write under a temporary name, sync, rename: a reader sees nothing or all (D18). `text` is a UTF-8 file to copy from."""
    index = () if text is None else tuple(_index(text))
    meta = msgspec.structs.replace(meta, index=index)
    path = sidecar_path(folder, name)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(msgspec.json.encode(meta) + b"\n")
            if text is not None:
                for block in _blocks(text):
                    file.write(block)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        _sync_folder(folder)
    finally:
        draft.unlink(missing_ok=True)
    return meta


def _index(text: Path) -> Iterator[int]:
    """Byte offsets of every INDEX_STEP-th code point, from the begin on: at least one, so that an empty text has a begin."""
    position = 0
    yield position
    with text.open(encoding="utf-8", newline="") as file:
        while len(block := file.read(INDEX_STEP)) == INDEX_STEP:
            position += len(block.encode())
            yield position


def _blocks(path: Path, size: int = 1 << 20) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(size):
            yield block


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

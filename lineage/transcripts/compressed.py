"""Rollouts that Codex has compressed (`rollout-….jsonl.zst`): the same lines, read through a bounded copy (T1, S3). No database."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSED = ".zst"
UNPACKED_BYTES = 1024 * 1024 * 1024  # a long session has 10 MB: a file that unpacks to more is a bomb
WINDOW_LOG = 27  # a frame may ask for 128 MiB of memory: the most that zstd's own program gives unasked
_CHUNK = 1024 * 1024  # bytes unpacked at once
_HEAD_CHUNK = 16 * 1024  # of a first look, which goes as far as a damage


class PackedError(Exception):
    """A compressed file that cannot be unpacked; its message says why."""


def is_compressed(path: Path) -> bool:
    return path.name.endswith(COMPRESSED)


def plain_path(path: Path) -> Path:
    """Where the file lies, or lay, when it is not compressed: by that name its lines are known."""
    return path.with_name(path.name.removesuffix(COMPRESSED)) if is_compressed(path) else path


@contextmanager
def unpacked(packed: BinaryIO) -> Iterator[BinaryIO]:
    """A temporary file with what is in it, gone afterwards. Raises PackedError."""
    with tempfile.TemporaryFile(prefix="lineage-unpacked-") as plain:
        size = 0
        for chunk in _chunks(packed):
            size += len(chunk)
            if size > UNPACKED_BYTES:
                raise PackedError(f"It unpacks to more than {UNPACKED_BYTES // 1024**2} MiB")
            plain.write(chunk)
        plain.flush()
        yield plain


def head_of(packed: BinaryIO, most: int) -> bytes:
    """Its first bytes, as far as they can be unpacked."""
    head = b""
    try:
        for chunk in _chunks(packed, _HEAD_CHUNK):
            head += chunk
            if len(head) >= most:
                break
    except PackedError:
        pass
    return head[:most]


def _chunks(packed: BinaryIO, size: int = _CHUNK) -> Iterator[bytes]:
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
    with zstd.ZstdFile(packed, options=options) as file:
        try:
            while chunk := file.read(size):
                yield chunk
        except EOFError as error:
            raise PackedError("The end of the compressed file is missing") from error
        except zstd.ZstdError as error:
            raise PackedError("It is no zstd file, or a damaged one") from error

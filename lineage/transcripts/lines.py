"""Lines of a transcript file as bytes: split on LF only, each with its place in the file; nothing is lost or repaired (T1).

U+2028, U+2029 and U+0085 are legal inside JSON strings, so `str.splitlines` and most text readers would part a line there.
"""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

# No tool writes such a line on purpose (images are capped far below); one of this size would sit in memory several times over.
LINE_BYTES = 32 * 1024 * 1024


class Fault(StrEnum):
    """Why a line gave no JSON object. The raw bytes are kept all the same, except those of a line that is too long."""

    BLANK = "blank"
    MALFORMED = "malformed"
    NOT_AN_OBJECT = "not an object"
    TOO_LONG = "too long"


class Line(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line. `offset` and `size` count bytes of the file, the LF included; `raw` is without it."""

    offset: int
    size: int
    raw: bytes
    value: dict[str, Any] | None = None
    fault: Fault | None = None


class LineSplitter:
    """Bytes in, whole lines out. What follows the last LF stays until the rest comes (T3)."""

    def __init__(self, offset: int = 0, *, longest: int = LINE_BYTES) -> None:
        self.offset = offset  # of the first byte that is not yet in a line
        self._rest: list[bytes] = []
        self._held = 0
        self._longest = longest

    def feed(self, data: bytes) -> list[Line]:
        """The lines that end in these bytes. A line over the cap is counted and dropped, never held."""
        parts = data.split(b"\n")
        if len(parts) == 1:
            self._hold(data)
            return []
        first, last = parts[0], parts.pop()
        lines: list[Line] = []
        if self._held or self._rest:
            self._hold(first)
            lines.append(self._close(b"".join(self._rest), self._held + 1))
            del parts[0]
        lines += [self._close(part, len(part) + 1) for part in parts]
        self._rest, self._held = [], 0
        self._hold(last)
        return lines

    def last(self) -> Line | None:
        """The text after the last LF when it is a whole JSON object: nothing but white space could follow it on its line."""
        raw = b"".join(self._rest)
        if self._held > self._longest or not raw.rstrip().endswith(b"}"):
            return None
        value, _ = decode_object(raw)
        if value is None:
            return None
        line = self._close(raw, self._held)
        self._rest, self._held = [], 0
        return line

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > self._longest:
            self._rest = []
        elif part:
            self._rest.append(part)

    def _close(self, raw: bytes, size: int) -> Line:
        offset = self.offset
        self.offset += size
        if size - 1 > self._longest:
            return Line(offset=offset, size=size, raw=b"", fault=Fault.TOO_LONG)
        value, fault = decode_object(raw)
        return Line(offset=offset, size=size, raw=raw, value=value, fault=fault)


def lines_of(raws: Sequence[bytes], *, offset: int) -> list[Line]:
    """Lines that came one by one, without their LFs, as if they stood in a file from `offset` on."""
    lines: list[Line] = []
    for raw in raws:
        value, fault = decode_object(raw)
        lines.append(Line(offset=offset, size=len(raw) + 1, raw=raw, value=value, fault=fault))
        offset += len(raw) + 1
    return lines


def decode_object(raw: bytes) -> tuple[dict[str, Any] | None, Fault | None]:
    """The JSON object of a line, or why there is none.

    The strict decoder is fast; what it refuses gets a second, lenient one, since transcripts do hold unpaired surrogates,
    NaN and bytes that are not UTF-8 (which then show as U+FFFD, while the raw line keeps them).
    """
    if not raw or raw.isspace():
        return None, Fault.BLANK
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            value = json.loads(raw.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            return None, Fault.MALFORMED
    if not isinstance(value, dict):
        return None, Fault.NOT_AN_OBJECT
    return value, None

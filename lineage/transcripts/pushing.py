"""Sessions that come in pieces over HTTP instead of from a file: their names, and which of their lines are new (T2). Pure.

The shape is that of the Claude Agent SDK's session stores: `append(key, entries)`. A batch that failed is sent again, and may
overlap with what was kept; lines without a uuid (titles, modes) say the same thing again quite rightly.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from console.errors import Invalid, TooLarge
from lineage.transcripts.digests import digest_of
from lineage.transcripts.lines import decode_object

ENTRIES = 10_000  # of one call; the SDK sends 500 at most, and one call is one transaction
KEY_CHARS = 200  # project key and session id; the SDK cuts a folder's name to 200 and a hash
SUBPATH_CHARS = 400
_PART = re.compile(r"[^/\\\x00-\x1f\ud800-\udfff]+")
_DIGEST = 8  # bytes
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


class SessionKey(Struct, frozen=True):
    """Whose entries these are. `subpath` is of what lies beside a session: `subagents/agent-<id>`."""

    project_key: str
    session_id: str
    subpath: str | None = None


def file_name(key: SessionKey) -> str:
    """The name that the session's file would have in its project folder. Refuses what could name no file."""
    _check("project_key", key.project_key, KEY_CHARS, parts=1)
    _check("session_id", key.session_id, KEY_CHARS, parts=1)
    if not key.subpath:
        return f"{key.session_id}.jsonl"
    _check("subpath", key.subpath, SUBPATH_CHARS)
    return f"{key.session_id}/{key.subpath}.jsonl"


def raw_lines(entries: Sequence[bytes]) -> list[bytes]:
    """Each entry as a line, byte for byte: line ends between its tokens, which would part it, become spaces."""
    if len(entries) > ENTRIES:
        raise TooLarge(
            "too_many_entries",
            f"There are {len(entries)} entries; at most {ENTRIES} are taken at once. Send them in parts.",
            limit=ENTRIES,
            actual=len(entries),
        )
    lines = [entry.replace(b"\n", b" ") for entry in entries]
    for number, line in enumerate(lines):
        if decode_object(line)[0] is None:
            raise Invalid(f"entries[{number}]", f"entries[{number}] is no JSON object, as every line of a session is.")
    return lines


def elements_in(body: bytes, name: bytes) -> list[bytes]:
    """The elements of the list under that key of a JSON object, byte for byte. The object is known to be whole."""
    found: list[bytes] = []
    depth, start, said, key = 0, -1, b"", b""
    for token in _TOKEN.finditer(body):
        text = token[0]
        if text in (b"[", b"{"):
            depth += 1
            if depth == 2 and text == b"[" and key == name:
                found, start = [], token.end()
        elif start >= 0 and depth == 2 and text in (b",", b"]"):
            element = body[start : token.start()].strip()
            found += [element] if element else []
            start = token.end() if text == b"," else -1
        if text in (b"]", b"}"):
            depth -= 1
        elif depth == 1 and text == b":":
            key = said
        elif depth == 1:
            said = text.strip(b'"')
    return found


def plain(body: bytes) -> bytes:
    """The same JSON with other characters in the place of escaped surrogates, which a strict reader may refuse."""
    return _SURROGATE.sub(rb"\\u0041", body)


def digests_of(lines: Sequence[bytes]) -> bytes:
    """What lines are known by again, one after the other."""
    return b"".join(map(digest_of, lines))


def new_among(lines: Sequence[bytes], kept: bytes) -> list[bytes]:
    """The lines of a batch that are not kept yet. `kept` are the digests of the file's lines, in order.

    Known is a batch that stands there as it is, if it has a uuid or stands at the end; then the beginning of a batch that the
    file ends with; then each line with a uuid. The same words of a line without one may be news again.
    """
    batch = digests_of(lines)
    has_uuid = [isinstance((decode_object(line)[0] or {}).get("uuid"), str) for line in lines]
    if kept.endswith(batch) or (any(has_uuid) and _stands_in(batch, kept)):
        return []
    same = next((n for n in range(len(lines) - 1, 0, -1) if kept.endswith(batch[: n * _DIGEST])), 0)
    known = {kept[n : n + _DIGEST] for n in range(0, len(kept), _DIGEST)}
    rest = zip(lines[same:], has_uuid[same:], strict=True)
    return [line for line, named in rest if not (named and digest_of(line) in known)]


def _stands_in(batch: bytes, kept: bytes) -> bool:
    place = kept.find(batch)
    while place >= 0 and place % _DIGEST:
        place = kept.find(batch, place + 1)
    return place >= 0


def _check(field: str, text: str, longest: int, *, parts: int | None = None) -> None:
    if len(text) > longest:
        raise Invalid(
            field,
            f"{field} has {len(text)} characters; at most {longest} are allowed.",
            limit=longest,
            actual=len(text),
        )
    found = text.split("/")
    if (parts and len(found) != parts) or any(part in (".", "..") or not _PART.fullmatch(part) for part in found):
        raise Invalid(
            field, f"{field} is no name of the SDK's. It is like that of the file on disk, without its ending."
        )

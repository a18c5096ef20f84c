"""Where each kind of stream is read: authorised by the apps' `access`, as of now, from the database (R3, R8).

Synchronous: the hub calls these through `console.crossing`.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from console.access import Who
from console.errors import DomainError, NotFound
from console.live.boards import RootSource, TeamSource
from console.live.conversations import ConversationSource
from console.live.documents import DocumentSource
from console.live.logs import Head, Log, Opening, Place

STREAM = re.compile(r"(?:(conversation|document|root):([1-9]\d{0,17})|team)\Z")


class Source(Protocol):
    """One kind of stream."""

    is_shared: bool  # everybody who may watch it gets the same

    def log(self, stream: str) -> Log: ...

    def place(self, who: Who, number: int) -> Place:
        """Whether `who` may watch it. Refusals: `not_found`, `forbidden`."""

    def open(self, who: Who | None, number: int, after: int | None) -> Opening:
        """Events after `after` where it lies within the last 1,000, else a snapshot; `who` was let in before."""

    def heads(self, numbers: Sequence[int]) -> dict[int, Head]:
        """How far these are, in one query; what no longer exists is missing."""


def named(stream: str) -> tuple[str, int]:
    """(kind, number) of a stream's name. Refusal: `invalid`."""
    match = STREAM.match(stream)
    if match is None:
        raise DomainError(
            "invalid",
            f"{stream[:80]!r} is no stream. Streams are document:ID, conversation:ID, root:ID and team.",
            field="stream",
        )
    return (match[1], int(match[2])) if match[1] else ("team", 0)


def source_of(kind: str) -> Source:
    source = _SOURCES.get(kind)
    if source is None:
        raise NotFound("stream", kind)
    return source


def new_log(stream: str) -> Log:
    return source_of(named(stream)[0]).log(stream)


def read_place(who: Who, stream: str) -> Place:
    """Whether `who` may watch the stream."""
    kind, number = named(stream)
    return source_of(kind).place(who, number)


def read_opening(stream: str, after: int | None) -> Opening:
    """One stream for the hub itself, catching up for its watchers."""
    kind, number = named(stream)
    return source_of(kind).open(None, number, after)


def read_joining(who: Who, stream: str, after: int | None, known: Head | None) -> tuple[Place, Opening | None]:
    """One stream for one who asks, authorised; no opening where a snapshot at `known` is still the present one."""
    kind, number = named(stream)
    source = source_of(kind)
    place = source.place(who, number)
    if source.is_shared and after is None and known is not None and known == place.head:
        return place, None
    return place, source.open(who, number, after)


def read_heads(streams: Sequence[str]) -> dict[str, Head]:
    """The heads of many streams, one query for each kind."""
    numbers: dict[str, dict[int, str]] = {}
    for stream in streams:
        kind, number = named(stream)
        numbers.setdefault(kind, {})[number] = stream
    return {
        names[number]: head
        for kind, names in numbers.items()
        for number, head in source_of(kind).heads(list(names)).items()
    }


_SOURCES: dict[str, Source] = {
    "conversation": ConversationSource(),
    "document": DocumentSource(),
    "root": RootSource(),
    "team": TeamSource(),
}

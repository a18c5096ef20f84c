"""The road from a commit to the viewers (R2). `publish_on_commit` is the only door to the fan-out.

Facts are numbered, states are replaced (R3): `Facts` carry consecutive `seq`, `Changed` a whole small state with a growing
version. What goes over the fan-out is a hint; the database is the truth.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from django.db import transaction


class Facts(msgspec.Struct, frozen=True, kw_only=True, tag="facts"):
    """New entries of a conversation or batches of a document: `items` are the events of CONTRACT as encoded JSON."""

    first: int
    items: tuple[msgspec.Raw, ...]

    @property
    def last(self) -> int:
        return self.first + len(self.items) - 1


class Changed(msgspec.Struct, frozen=True, kw_only=True, tag="changed"):
    """A small state, sent whole. A lower version than one already seen is dropped."""

    version: int
    state: msgspec.Raw


class Rows(msgspec.Struct, frozen=True, kw_only=True, tag="rows"):
    """Board rows that changed, each with the root that decides who may see it (R9)."""

    version: int
    rows: tuple[tuple[int, msgspec.Raw], ...]


class Grown(msgspec.Struct, frozen=True, kw_only=True, tag="grown"):
    """Something was committed that is too large to be carried: ask the database. Writers never make it themselves."""


class Told(msgspec.Struct, frozen=True, kw_only=True, tag="told"):
    """What those who watch at this moment hear: a whole frame, no fact and no state. Never stored; who misses it misses it."""

    frame: msgspec.Raw


class AccessChanged(msgspec.Struct, frozen=True, kw_only=True, tag="access"):
    """A membership or a token ended or changed: sockets of that actor ask again what they may see (S2)."""

    actor: int


Event = Facts | Changed | Rows | Grown | Told | AccessChanged

encode_json: Callable[[Any], bytes] = msgspec.json.Encoder().encode


def raw(value: Any) -> msgspec.Raw:
    """A JSON value, encoded once and carried as it is."""
    return msgspec.Raw(encode_json(value))


def publish_on_commit(stream: str, event: Event) -> None:
    """After this transaction's commit, tell the hubs that watch `stream` ("document:7", "conversation:12", "root:3", "team",
    "access"). Never an error of the writer: a dead Valkey costs at most 200 ms, and hubs then find out by asking (R2)."""
    # The entry layer; imported late so that this core module stays below it.
    from console.live import publishing

    transaction.on_commit(partial(publishing.publish, stream, event), robust=True)


def publish_each_on_commit(events: Sequence[tuple[str, Event]]) -> None:
    """The same for many streams, in few round trips."""
    from console.live import publishing

    if len(events) == 1:
        publish_on_commit(*events[0])
    elif events:
        transaction.on_commit(partial(publishing.publish_each, list(events)), robust=True)

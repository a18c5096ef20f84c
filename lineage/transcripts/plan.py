"""What a reader makes of transcript lines: steps in order, which an import carries out (T1, T2). Pure values.

A plan only ever grows: reading more lines gives further steps and never changes an earlier one. A conversation is named
by a `key` that is the same at every reading; its entries count from 1 (`Place.ordinal`), and an import maps these to numbers.
"""

from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any

import msgspec


class Place(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A position in a conversation: its entry `ordinal`, from 1; 0 is before the first."""

    conversation: str
    ordinal: int


class Source(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The line that an entry was made of: byte offset and size in its file."""

    offset: int
    size: int


class PlannedUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Tokens of one answer, as far as its lines have told. The largest counts of a message id are its usage (A6)."""

    message_id: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micros: int | None = None


class PlannedEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry of at most one line. `model` and `data` are as L2 says; their shapes are in this folder's README.

    `head` starts the model's context here; with `keeps` it starts at that earlier entry, this one first (L4). `omits` are earlier
    entries that the model no longer reads (the failed attempt before a prompt that was sent again), `replaces` those for which it
    reads other messages. `outcome` is aborted or failed for an answer that it does not read (L4). `ends_turn` is the format's own
    mark that the agent has ended its turn (L8).
    """

    kind: str
    source: Source
    model: list[dict[str, Any]] | None = None
    data: dict[str, Any] = {}
    time: datetime | None = None
    head: bool = False
    keeps: Place | None = None
    omits: tuple[Place, ...] = ()
    replaces: tuple[tuple[Place, list[dict[str, Any]]], ...] = ()
    message_id: str = ""
    outcome: str = ""
    prompt: str = ""
    usage: PlannedUsage | None = None
    uuid: str = ""
    ends_turn: bool = False


class OpenedKind(StrEnum):
    """Kinds of conversation that transcripts bring; a test holds them to `lineage.models.Kind`, which pure code cannot import."""

    SESSION = "session"
    BRANCH = "branch"
    AGENT = "agent"


class RunState(StrEnum):
    """What a conversation does by its lines; a test holds them to `lineage.models.State`."""

    RUNNING = "running"
    ANSWER = "answer"
    CHILD = "child"
    IDLE = "idle"
    FAILED = "failed"


class TitleRank(IntEnum):
    """Who named it; a lower rank never replaces a higher one."""

    PROMPT = 1  # the first prompt, or the last
    SUMMARY = 2  # made by a model
    PERSON = 3  # given by a person


class Opened(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """A conversation begins. A branch has `parent` (its fork entry), an agent's has `owner` (the entry that called it)."""

    key: str
    kind: OpenedKind
    parent: Place | None = None
    owner: Place | None = None
    call: str = ""
    folder: str = ""
    model: str = ""
    time: datetime | None = None


class Appended(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """The next entry of a conversation."""

    key: str
    entry: PlannedEntry


class Linked(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """The call behind an agent's conversation was found only after it had begun."""

    key: str
    owner: Place
    call: str


class Titled(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    key: str
    title: str
    rank: TitleRank


class Stated(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """The conversation's state by its lines (L8). `why` is one line."""

    key: str
    state: RunState
    why: str = ""


class Used(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """The model that answers in a conversation, when it is not the one told before."""

    key: str
    model: str


type Step = Opened | Appended | Linked | Titled | Stated | Used

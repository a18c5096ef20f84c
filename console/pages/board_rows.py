"""Rows of the board as its page shows them. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from console.board.models import BoardRow
from console.board.queries import Need
from console.shown import hue
from lineage.models import Approval

# Dots of one root: more of them are a crowd that nobody counts, so the rest is a number.
DOTS = 12
_ORDER = ("failed", "answer", "approval", "running", "child")
_HEIGHT, _STEP, _BAR, _LEAST = 20.0, 4, 3, 1.5


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One hour of the activity, in the units of the sparkline's view box."""

    x: int
    y: float
    height: float
    kind: str  # "", "now" or "zero"


@dataclass(frozen=True, kw_only=True)
class Said:
    """The last line of a conversation."""

    text: str
    conversation: int
    seq: int
    time: datetime
    name: str
    hue: int
    agent: bool

    @classmethod
    def of(cls, last: dict[str, Any]) -> Self:
        author = last.get("author") or {}
        return cls(
            text=str(last.get("text") or ""),
            conversation=int(last["conversation"]),
            seq=int(last["seq"]),
            time=datetime.fromisoformat(last["time"]),
            name=str(author.get("name") or ""),
            hue=hue(author.get("id")),
            agent=author.get("kind") != "person",
        )


@dataclass(frozen=True, kw_only=True)
class RootRow:
    root: int
    title: str
    dots: list[str]
    more: int  # states beyond the dots
    idle: int
    last: Said | None
    touched: datetime
    landed: int
    cost_micros: int | None
    bars: list[Bar]
    entries: int  # of the last 24 hours

    @classmethod
    def of(cls, row: BoardRow) -> Self:
        busy = [state for state in _ORDER for _ in range(int(row.states.get(state, 0)))]
        return cls(
            root=row.root,
            title=row.title,
            dots=busy[:DOTS],
            more=max(0, len(busy) - DOTS),
            idle=int(row.states.get("idle", 0)),
            last=Said.of(row.last) if row.last and row.last.get("text") else None,
            touched=row.touched,
            landed=row.landed,
            cost_micros=row.cost_micros,
            bars=bars_of(row.activity),
            entries=sum(row.activity),
        )


def bars_of(activity: list[int]) -> list[Bar]:
    """The hours as bars against the busiest of them; an hour without anything keeps a foot, so that time is seen."""
    most = max(activity, default=0) or 1
    bars = []
    for n, count in enumerate(activity):
        height = max(_LEAST, round(_HEIGHT * count / most, 1))
        kind = "zero" if not count else "now" if n == len(activity) - 1 else ""
        bars.append(Bar(x=n * _STEP, y=round(_HEIGHT - height, 1), height=height, kind=kind))
    return bars


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Something that waits for a person, and for a call that asks what it would do."""

    need: Need
    approval: Approval | None
    others: int  # further calls of that conversation
    may_decide: bool

    @classmethod
    def of(cls, need: Need, asked: list[Approval], may_decide: bool) -> Self:
        first = asked[0] if asked else None
        return cls(need=need, approval=first, others=max(0, len(asked) - 1), may_decide=may_decide)


@dataclass(frozen=True, kw_only=True)
class FeedLine:
    said: Said
    root: int
    title: str

    @classmethod
    def of(cls, line: dict[str, Any]) -> Self:
        return cls(said=Said.of(line), root=int(line["root"]), title=str(line.get("title") or ""))

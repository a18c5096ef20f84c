"""What the dashboard, root pages and the live socket read of the board (R9). Costs follow the page, not the tree (C3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, F, IntegerField, Max, Q, QuerySet, Sum, Value, When

from console.access import Who
from console.board.models import NEEDING, BoardRow, TreeRow
from console.board.moments import shifted, this_hour, today
from console.board.shapes import outline_json, root_json
from lineage.access import visible_roots
from lineage.models import Conversation, State

PAGE = 50  # roots of one page of the dashboard
TREE_PAGE = 500  # conversations of a root's first page
NEEDS_SHOWN = 50  # items of the strip "needs you"
FEED = 30  # lines of the feed


@dataclass(frozen=True, kw_only=True)
class BoardPage:
    """Rows of roots in order; `next` is the cursor of the page after it. `version` is the board's when it was read."""

    rows: list[BoardRow]
    next: str | None
    total: int
    version: int

    def as_json(self) -> dict[str, Any]:
        return {"rows": [root_json(row) for row in self.rows], "next": self.next, "total": self.total}


@dataclass(frozen=True, kw_only=True)
class Need:
    """A conversation that waits for a person: `state` is approval, answer or failed; `why` one line."""

    root: int
    root_title: str
    conversation: int
    seq: int
    title: str
    state: str
    why: str
    since: datetime

    def as_json(self) -> dict[str, Any]:
        return {
            "root": self.root,
            "root_title": self.root_title,
            "kind": self.state,
            "conversation": self.conversation,
            "seq": self.seq,
            "title": self.title,
            "why": self.why,
            "since": self.since.isoformat(),
        }


def board_page(who: Who | None, *, order: str = "attention", cursor: str | None = None, limit: int = PAGE) -> BoardPage:
    """The roots that `who` may see. By "attention": first those that need a person, the longest waiting first; then those
    where something runs, then the rest, the last touched first. By "title" otherwise. `who` none: all of them.
    """
    version = board_version()
    rows = _visible(BoardRow.objects.all(), who)
    total = rows.count()
    start = int(cursor) if cursor and cursor.isdecimal() and len(cursor) < 9 else 0
    found = list(_ordered(rows, order)[start : start + limit + 1])
    more = str(start + limit) if len(found) > limit else None
    return BoardPage(rows=[brought_to_now(row) for row in found[:limit]], next=more, total=total, version=version)


def needs_you(who: Who | None, *, limit: int = NEEDS_SHOWN) -> tuple[list[Need], int]:
    """What waits for a person in the roots that `who` may see, the oldest first, and how much there is in all."""
    waiting = _visible(TreeRow.objects.filter(state__in=NEEDING), who)
    rows = list(waiting.order_by("since", "conversation")[:limit])
    named = Conversation.objects.in_bulk({row.conversation for row in rows} | {row.root for row in rows})
    needs = [
        Need(
            root=row.root,
            root_title=named[row.root].title,
            conversation=row.conversation,
            seq=row.head,
            title=named[row.conversation].title,
            state=row.state,
            why=named[row.conversation].state_why,
            since=row.since,
        )
        for row in rows
        if row.conversation in named and row.root in named
    ]
    return needs, len(rows) if len(rows) < limit else waiting.count()


def feed(who: Who | None, *, limit: int = FEED) -> list[dict[str, Any]]:
    """The last lines of the conversations that changed last: `{text, conversation, seq, author, time, root, title}`."""
    rows = list(_visible(TreeRow.objects.filter(last__isnull=False), who).order_by("-touched")[:limit])
    named = Conversation.objects.in_bulk([row.conversation for row in rows])
    return [
        {**row.last, "root": row.root, "title": named[row.conversation].title}
        for row in rows
        if row.last is not None and row.conversation in named
    ]


def rows_after(who: Who | None, version: int, *, limit: int) -> list[BoardRow]:
    """Rows newer than a version that `who` may see, the oldest change first: the catch-up of the dashboard."""
    rows = _visible(BoardRow.objects.filter(version__gt=version), who).order_by("version")
    return [brought_to_now(row) for row in rows[:limit]]


def rows_of(who: Who, roots: Sequence[int]) -> list[BoardRow]:
    """The rows of these roots, of those that `who` may see."""
    return [brought_to_now(row) for row in _visible(BoardRow.objects.filter(pk__in=roots), who)]


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums over the roots that somebody may see: `states` in the order of attention, those at zero left out."""

    states: list[tuple[str, int]]
    landed: int
    cost_micros: int | None


_ATTENTION = (State.RUNNING, State.APPROVAL, State.ANSWER, State.CHILD, State.FAILED, State.IDLE)


def board_totals(who: Who) -> Totals:
    """What the whole board adds up to, of today."""
    rows = list(_visible(BoardRow.objects.all(), who).values_list("states", "day", "landed", "cost_micros"))
    of_today = [(landed, cost) for _, day, landed, cost in rows if day == today()]
    costs = [cost for _, cost in of_today if cost is not None]
    sums = {state: sum(int(states.get(state, 0)) for states, *_ in rows) for state in _ATTENTION}
    return Totals(
        states=[(str(state), count) for state, count in sums.items() if count],
        landed=sum(landed for landed, _ in of_today),
        cost_micros=sum(costs) if costs else None,
    )


def needing(who: Who) -> int:
    """How much waits for a person in the roots that `who` may see."""
    return int(_visible(BoardRow.objects.all(), who).aggregate(sum=Sum("needing"))["sum"] or 0)


def root_row(root: int) -> BoardRow | None:
    """The row of one root; none until the keeper has seen it."""
    row = BoardRow.objects.filter(pk=root).first()
    return brought_to_now(row) if row is not None else None


def root_rows(root: int, *, after: int | None = None, limit: int = TREE_PAGE) -> list[dict[str, Any]]:
    """The outline of a root as JSON (`shapes.outline_json`): what changed after a version, the oldest change first; without
    one the first page: all that is not idle, then the last touched.
    """
    rows = TreeRow.objects.filter(root=root)
    if after is not None:
        found = list(rows.filter(version__gt=after).order_by("version")[:limit])
    else:
        quiet = Case(When(state=State.IDLE, then=Value(1)), default=Value(0), output_field=IntegerField())
        found = list(rows.order_by(quiet, "-touched", "conversation")[:limit])
    named = Conversation.objects.in_bulk([row.conversation for row in found])
    return [outline_json(row, named[row.conversation]) for row in found if row.conversation in named]


def tree_size(root: int) -> int:
    """How many conversations the outline of a root has."""
    return TreeRow.objects.filter(root=root).count()


def board_version() -> int:
    """The newest version of the dashboard's rows."""
    return int(BoardRow.objects.aggregate(newest=Max("version"))["newest"] or 0)


def root_versions(roots: Sequence[int]) -> dict[int, int]:
    """The newest version of each root's rows: that of its own row, which changes with every other."""
    return dict(BoardRow.objects.filter(pk__in=roots).values_list("root", "version"))


def brought_to_now(row: BoardRow) -> BoardRow:
    """The row as of this hour and day, should the keeper be away: what was counted yesterday is not today's."""
    row.activity = shifted(row.activity, row.hour, to=this_hour())
    row.hour = max(row.hour, this_hour())
    if row.day != today():
        row.day, row.landed, row.cost_micros = today(), 0, None
    return row


def _visible[Row: (BoardRow, TreeRow)](rows: QuerySet[Row], who: Who | None) -> QuerySet[Row]:
    if who is None or who.superuser:
        return rows
    return rows.filter(root__in=visible_roots(who).values("pk"))


def _ordered(rows: QuerySet[BoardRow], order: str) -> QuerySet[BoardRow]:
    if order == "title":
        return rows.order_by("title", "root")
    runs = Q(states__has_any_keys=[State.RUNNING, State.CHILD])
    rank = Case(When(needing__gt=0, then=0), When(runs, then=1), default=2, output_field=IntegerField())
    return rows.order_by(rank, F("needing_since").asc(nulls_last=True), "-touched", "root")

"""The board keeper (R9): folds what was committed into rows, counts changes from what it folded before, and announces them.
What was touched is due for search too.

Under one lock, so that versions are committed in order. A fold that is interrupted leaves its `Touched` rows behind, and
the next one does all of it again.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any

import msgspec
from django.db import connection, transaction
from django.db.models import Count, Q, Sum

from console.board.lines import TELLING, line_of
from console.board.models import HOURS, NEEDING, BoardRow, TreeRow
from console.board.moments import day_start, first_shown, shifted, this_hour, today
from console.board.shapes import gone_json, outline_json, root_json
from console.events import Rows, publish_on_commit, raw
from console.marks import take_marks
from console.models import Touched
from console.search.models import SearchDue
from lineage.models import Conversation, Entry, Kind, Landing, State, Usage

FOLD = 2000  # conversations of one transaction: about a tenth of a second
NEEDS = 20  # items of one root that its row names; `needing` says how many there are
LOOK_BACK = 40  # entries among which the last telling one is looked for
LONGEST_MODEL = 256 * 1024  # characters of messages that are read for one line
LOCK = 0x626F617264  # the advisory lock of a fold: "board"


def fold_touched(limit: int = FOLD) -> bool:
    """Fold what was touched since; whether there was more than that."""
    with transaction.atomic():
        _lock()
        touched = sorted(take_marks(Touched, limit))
        if touched:
            _fold(touched)
            SearchDue.objects.bulk_create(SearchDue(conversation=pk) for pk in touched)
    return len(touched) >= limit


def refresh_for_time() -> int:
    """Rows whose day or hour has passed: today's counts begin again, the activity moves on. How many there were."""
    day, hour = today(), this_hour()
    with transaction.atomic():
        _lock()
        late = Q(day__lt=day) & (Q(landed__gt=0) | Q(cost_micros__isnull=False))
        late |= Q(hour__lt=hour) & ~Q(activity=[0] * HOURS)
        rows = list(BoardRow.objects.filter(late).order_by("root"))
        if rows:
            landed = _landed([row.root for row in rows], day)
            for row in rows:
                _bring_to(row, day, hour)
                row.landed = landed.get(row.root, 0)
            _number(rows, [])
            _store(rows)
            _announce(rows, [], {}, set())
    return len(rows)


def _fold(touched: Collection[int]) -> None:
    day, hour = today(), this_hour()
    found = Conversation.objects.select_related("root").in_bulk(touched)
    before = TreeRow.objects.in_bulk(touched)
    counts = _Counts()
    asked = _asked([pk for pk, row in found.items() if row.kind == Kind.ROOT])
    rows = {pk: _tree_row(row, before.get(pk), day, pk in asked) for pk, row in found.items()}
    heads = {pk: (before[pk].head if pk in before else row.at, row.head) for pk, row in found.items()}
    grown = {pk: (head, upto) for pk, (head, upto) in heads.items() if upto > head}
    lasts = _last_lines(grown)
    costs = _costs(list(found), day)
    for pk, row in rows.items():
        row.last = lasts.get(pk, row.last)
        row.cost_micros = costs.get(pk)
        counts.add(row, before.get(pk))
    gone = [row for pk, row in before.items() if pk not in found]
    for row in gone:
        counts.remove(row)
    TreeRow.objects.filter(pk__in=[row.pk for row in gone]).delete()
    boards = _board_rows({row.root for row in [*rows.values(), *gone]}, day, hour)
    for root, activity in _activity(grown, {pk: row.root_id for pk, row in found.items()}).items():
        boards[root].activity = [a + b for a, b in zip(boards[root].activity, activity, strict=True)]
    changed = sorted(rows.values(), key=lambda row: (row.root, row.conversation))
    _number(list(boards.values()), changed)
    TreeRow.objects.bulk_create(
        changed,
        update_conflicts=True,
        unique_fields=["conversation"],
        update_fields=["root", "version", "state", "since", "counted", "head", "day", "cost_micros", "last", "touched"],
    )
    erased = _fill(boards, counts, rows.values(), day)
    _announce(list(boards.values()), changed, found, erased)


class _Counts:
    """What changed in each root's counters."""

    def __init__(self) -> None:
        self.states: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.costs: dict[int, list[int]] = defaultdict(list)

    def add(self, row: TreeRow, before: TreeRow | None) -> None:
        if before is not None:
            self.remove(before, today=row.day)
        if row.counted:
            self.states[row.root][row.state] += 1
        if row.cost_micros is not None:
            self.costs[row.root].append(row.cost_micros)

    def remove(self, row: TreeRow, *, today: date | None = None) -> None:
        if row.counted:
            self.states[row.root][row.state] -= 1
        if row.cost_micros is not None and (today is None or row.day == today):
            self.costs[row.root].append(-row.cost_micros)


def _lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])


def _asked(conversations: Sequence[int]) -> set[int]:
    """Those in which somebody asked something."""
    asked = Entry.objects.filter(conversation__in=conversations).exclude(prompt="")
    return set(asked.values_list("conversation", flat=True).distinct())


def _tree_row(row: Conversation, before: TreeRow | None, day: date, asked: bool) -> TreeRow:
    return TreeRow(
        conversation=row.pk,
        root=row.root_id,
        state=row.state,
        since=row.state_since,
        counted=_is_counted(row, asked),
        head=row.head,
        day=day,
        last=before.last if before is not None else None,
        touched=row.touched,
    )


def _is_counted(row: Conversation, asked: bool) -> bool:
    """Subagents stand under their owner, which waits for them; a tally, and a root nobody asked anything, run nothing."""
    if row.kind == Kind.ROOT:
        return not row.root.is_tally and (asked or row.state != State.IDLE)
    return row.kind != Kind.AGENT


def _last_lines(grown: Mapping[int, tuple[int, int]]) -> dict[int, dict[str, Any]]:
    """Of each conversation the last of its new entries that tells something. `grown`: (above, up to)."""
    if not grown:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT n.id, e.seq, e.kind, e.prompt, e.model, e.data, e.time, a.id, a.name, a.kind
            FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS n(id, head, upto)
            CROSS JOIN LATERAL (
                SELECT seq, kind, prompt, data, time, author_id,
                    CASE WHEN length(model) <= %s THEN model ELSE '' END AS model
                FROM lineage_entry
                WHERE conversation_id = n.id AND seq > greatest(n.head, n.upto - %s) AND seq <= n.upto
                    AND kind = ANY(%s)
                ORDER BY seq DESC LIMIT 1
            ) e LEFT JOIN console_actor a ON a.id = e.author_id
            """,
            [*_columns(grown), LONGEST_MODEL, LOOK_BACK, list(TELLING)],
        )
        rows = cursor.fetchall()
    lasts: dict[int, dict[str, Any]] = {}
    for pk, seq, kind, prompt, model, data, time, actor, name, sort in rows:
        text = line_of(kind=kind, prompt=prompt, model=model, data=data)
        author = {"id": actor, "name": name, "kind": sort} if actor is not None else None
        lasts[pk] = {"text": text, "conversation": pk, "seq": seq, "author": author, "time": time.isoformat()}
    return lasts


def _activity(grown: Mapping[int, tuple[int, int]], roots: Mapping[int, int]) -> dict[int, list[int]]:
    """New entries of the last hours in each root, by when they happened: an import of last year's is no activity."""
    if not grown:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT n.id, floor(extract(epoch FROM e.time) / 3600)::bigint, count(*)
            FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS n(id, head, upto)
            JOIN lineage_entry e ON e.conversation_id = n.id AND e.seq > n.head AND e.seq <= n.upto
            WHERE e.time >= %s GROUP BY 1, 2
            """,
            [*_columns(grown), first_shown()],
        )
        rows = cursor.fetchall()
    now = this_hour()
    found: dict[int, list[int]] = defaultdict(lambda: [0] * HOURS)
    for pk, hour, count in rows:
        found[roots[pk]][max(0, min(HOURS - 1, HOURS - 1 - (now - hour)))] += count
    return found


def _columns(grown: Mapping[int, tuple[int, int]]) -> list[list[int]]:
    return [list(grown), [head for head, _ in grown.values()], [upto for _, upto in grown.values()]]


def _costs(conversations: Sequence[int], day: date) -> dict[int, int]:
    """What each conversation's answers of the day cost, where they have a price."""
    usages = Usage.objects.filter(conversation__in=conversations, time__gte=day_start(day), cost_micros__isnull=False)
    sums = usages.values("conversation").annotate(sum=Sum("cost_micros"))
    return dict(sums.values_list("conversation", "sum"))


def _landed(roots: Sequence[int], day: date) -> dict[int, int]:
    landings = Landing.objects.filter(root__in=roots, time__gte=day_start(day))
    return dict(landings.values("root").annotate(count=Count("pk")).values_list("root", "count"))


def _board_rows(roots: Collection[int], day: date, hour: int) -> dict[int, BoardRow]:
    """The rows of these roots, brought to the present hour and day; new ones where there are none yet."""
    rows = BoardRow.objects.in_bulk(roots)
    for root in sorted(roots):
        if root in rows:
            _bring_to(rows[root], day, hour)
        else:
            rows[root] = BoardRow(root=root, day=day, hour=hour, activity=[0] * HOURS)
    return rows


def _bring_to(row: BoardRow, day: date, hour: int) -> None:
    row.activity = shifted(row.activity, row.hour, to=hour)
    row.hour = max(row.hour, hour)
    if row.day != day:
        row.day, row.landed, row.cost_micros = day, 0, None


def _number(boards: Sequence[BoardRow], rows: Sequence[TreeRow]) -> None:
    """A version for each changed row; a root's own row comes after those of its conversations and is its stream's head."""
    if not boards:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('console_board_version') FROM generate_series(1, %s)", [len(boards) + len(rows)])
        versions = iter(sorted(row[0] for row in cursor.fetchall()))
    of_root: dict[int, list[TreeRow]] = defaultdict(list)
    for row in rows:
        of_root[row.root].append(row)
    for board in sorted(boards, key=lambda board: board.root):
        for row in of_root[board.root]:
            row.version = next(versions)
        board.version = next(versions)


def _fill(boards: dict[int, BoardRow], counts: _Counts, changed: Collection[TreeRow], day: date) -> set[int]:
    """Title, counters, needs and last line of each root, and store them. Answers the roots that are no more."""
    heads = Conversation.objects.in_bulk(boards)
    landed = _landed(list(boards), day)
    needs = _needs(list(boards))
    named = Conversation.objects.in_bulk([row.conversation for rows in needs.values() for row in rows[:NEEDS]])
    for root, board in boards.items():
        for state, change in counts.states[root].items():
            board.states[state] = board.states.get(state, 0) + change
        board.states = {state: count for state, count in board.states.items() if count}
        if counts.costs[root]:
            board.cost_micros = (board.cost_micros or 0) + sum(counts.costs[root])
        board.landed = landed.get(root, 0)
        waiting = needs.get(root, [])
        board.needs = [_need(row, named[row.conversation]) for row in waiting[:NEEDS] if row.conversation in named]
        board.needing, board.needing_since = len(waiting), waiting[0].since if waiting else None
        if root in heads:
            board.title = heads[root].title
            board.touched = max(heads[root].touched, board.touched or heads[root].touched)
    for row in sorted(changed, key=lambda row: row.touched):
        board = boards[row.root]
        board.touched = max(board.touched or row.touched, row.touched)
    _fill_last(boards, changed)
    gone = set(boards) - set(heads)
    TreeRow.objects.filter(root__in=gone).delete()
    BoardRow.objects.filter(root__in=gone).delete()
    _store([board for root, board in boards.items() if root in heads])
    return gone


def _fill_last(boards: Mapping[int, BoardRow], changed: Collection[TreeRow]) -> None:
    """The newest of the last lines of each root's conversations, by when they happened. The rows are stored already."""
    stepped_back = set()
    for row in sorted(changed, key=lambda row: row.touched):
        last = boards[row.root].last
        if row.last is None:
            continue
        if last is None or row.last["time"] >= last["time"]:
            boards[row.root].last = row.last
        elif last["conversation"] == row.conversation:  # it has gone on with a line that happened before: an import
            stepped_back.add(row.root)
    for root in stepped_back:
        newest = TreeRow.objects.filter(root=root, last__isnull=False).order_by("-last__time").first()
        boards[root].last = newest.last if newest is not None else None


def _store(rows: Sequence[BoardRow]) -> None:
    """All of them with one statement, whether they are new or not."""
    BoardRow.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["root"],
        update_fields=[field.name for field in BoardRow._meta.fields if field.name != "root"],
    )


def _needs(roots: Sequence[int]) -> dict[int, list[TreeRow]]:
    """What waits for a person in each root, the oldest first."""
    found: dict[int, list[TreeRow]] = defaultdict(list)
    waiting = TreeRow.objects.filter(root__in=roots, state__in=NEEDING)
    for row in waiting.order_by("root", "since", "conversation"):
        found[row.root].append(row)
    return found


def _need(row: TreeRow, conversation: Conversation) -> dict[str, Any]:
    return {
        "kind": row.state,
        "conversation": row.conversation,
        "seq": row.head,
        "title": conversation.title,
        "why": conversation.state_why,
        "since": row.since.isoformat(),
    }


def _announce(
    boards: Sequence[BoardRow],
    changed: Sequence[TreeRow],
    conversations: Mapping[int, Conversation],
    gone: Collection[int],
) -> None:
    """One event for the team, and one for each root with its conversations' rows."""
    if not boards:
        return
    of_root: dict[int, list[tuple[int, msgspec.Raw]]] = defaultdict(list)
    for row in changed:
        of_root[row.root].append((row.root, raw(outline_json(row, conversations[row.conversation]))))
    team: list[tuple[int, msgspec.Raw]] = []
    for board in sorted(boards, key=lambda board: board.version):
        shape = gone_json(board.root, board.version) if board.root in gone else root_json(board)
        own = (board.root, raw(shape))
        team.append(own)
        rows = (*of_root[board.root], own)
        publish_on_commit(f"root:{board.root}", Rows(version=board.version, rows=rows))
    publish_on_commit("team", Rows(version=max(board.version for board in boards), rows=tuple(team)))

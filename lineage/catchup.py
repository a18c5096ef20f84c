"""What a branch has not yet seen of its tally (L16, L29), as one bounded note."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection

from console.json_text import one_line
from lineage.actions.entries import NewEntry
from lineage.loading import visible_ranges
from lineage.models import Conversation, Kind, TallyKind, TallyLine, TallySeen

LINES = 20  # news of one note: what a reader takes in before it begins to work
LINE_LENGTH = 400  # characters of one; its whole text stands in the root


@dataclass(frozen=True, kw_only=True)
class CatchUp:
    """The note, and the tally's entry up to which it tells."""

    entry: NewEntry
    position: int
    text: str


def catch_up_entry(conversation: Conversation) -> CatchUp | None:
    """What is new in the tally since the conversation last looked, without its own news; none when there is nothing."""
    return catch_up_entries([conversation]).get(conversation.pk)


def catch_up_entries(conversations: Sequence[Conversation]) -> dict[int, CatchUp]:
    """The same for many: one statement for what they know, and one for each tally."""
    reading = [
        row for row in conversations if row.root.since is not None and row.pk != row.root_id and row.kind != Kind.AGENT
    ]
    known = _known([(row, row.head) for row in reading])
    of_root: dict[int, list[tuple[int, int]]] = {}
    for row in reading:
        of_root.setdefault(row.root_id, []).append((row.pk, max(known[row.pk] or 0, row.root.since or 0)))
    found: dict[int, CatchUp] = {}
    for root, readers in of_root.items():
        lines = TallyLine.objects.filter(root=root, seq__gt=min(after for _, after in readers)).order_by("seq")
        unseen = list(lines)
        owners = dict(lines.filter(about__owner__isnull=False).values_list("about", "about__owner"))
        for reader, after in readers:
            first = bisect_right(unseen, after, key=lambda line: line.seq)
            news = [line for line in unseen[first:] if reader not in (line.about_id, owners.get(line.about_id))]
            shown = _newest_of_each(news)
            if shown:
                found[reader] = _told(root, shown, news[-1].seq)
    return found


def _told(root: int, shown: list[TallyLine], position: int) -> CatchUp:
    text = _rendered(root, shown)
    message = {"role": "user", "content": text}
    data = {"source": "main", "from": root, "position": position, "text": text}
    return CatchUp(entry=NewEntry(kind="lineage.note", model=[message], data=data), position=position, text=text)


def tally_known(conversation: Conversation, at: int) -> int | None:
    """How far a fork of the conversation at `at` knows the tally of its tree (L16), newest first: an inherited entry of the
    root, a brief's tip, a catch-up note's position. None: not at all."""
    return _known([(conversation, at)])[conversation.pk]


_SEEN = """
SELECT DISTINCT ON (s.reader) s.reader, t.position
FROM unnest(%s::bigint[], %s::bigint[], %s::int[]) AS s(reader, source, last)
JOIN lineage_tallyseen t ON t.conversation_id = s.source AND t.seq <= s.last
ORDER BY s.reader, t.seq DESC
"""


def _known(places: Sequence[tuple[Conversation, int]]) -> dict[int, int | None]:
    found: dict[int, int | None] = {}
    looked: list[tuple[int, int, int]] = []
    for row, at in places:
        ranges = visible_ranges(row, at)
        found[row.pk] = next((last for source, _, last in ranges if source == row.root_id), None)
        looked += ((row.pk, source, last) for source, _, last in ranges if source != row.root_id)
        if row.kind == Kind.SESSION or not ranges:
            looked.append((row.pk, row.pk, 0))
    if looked:
        with connection.cursor() as cursor:
            cursor.execute(_SEEN, [list(column) for column in zip(*looked, strict=True)])
            found |= dict(cursor.fetchall())
    return found


def know_tally(*, conversation: int, seq: int, position: int | None) -> None:
    """At its entry `seq` the conversation knows the tally up to `position`; in the transaction that places the entry."""
    know_tallies([(conversation, seq, position)])


def know_tallies(known: Iterable[tuple[int, int, int | None]]) -> None:
    """The same for many: (conversation, seq, position)."""
    TallySeen.objects.bulk_create(
        TallySeen(conversation_id=conversation, seq=seq, position=position) for conversation, seq, position in known
    )


def _newest_of_each(news: list[TallyLine]) -> list[TallyLine]:
    """An abstract counts once per conversation, as it reads now, and not at all once a landing froze it."""
    last = {line.about_id: line.seq for line in news if line.kind in (TallyKind.ABSTRACT, TallyKind.LANDING)}
    return [line for line in news if line.kind != TallyKind.ABSTRACT or last[line.about_id] == line.seq]


def _rendered(root: int, lines: list[TallyLine]) -> str:
    shown = lines[-LINES:]
    more = len(lines) - len(shown)
    return "\n".join(
        [
            f"New in the tally of #{root} since you last looked:",
            *([f"{more} more before these, from #{root}/{lines[0].seq} on"] if more else []),
            *(f"- {one_line(line.text, LINE_LENGTH)}" for line in shown),
        ]
    )

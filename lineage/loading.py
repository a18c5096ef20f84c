"""Finds the lines of a context (L3, L4): the newest head down the path, then one ordered range per segment.

One statement each, however many forks the path has. `seq` orders inherited and own entries in one line (L2), so a segment
is a range of it.
"""

from dataclasses import dataclass
from functools import partial

from django.db import connection

from lineage.context import Context, Line, answer_text, derive_context, parse_messages
from lineage.models import Conversation, Entry, EntryEdit

_PAGE = 50  # entries looked at in one go when the last answer is sought from the end
_ANSWER_SPAN = 1000  # entries among which the lines of one answer lie: tools that run side by side write between them

_HEAD = """
SELECT e.conversation_id, e.seq, e.head
FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS s(conversation, first, last)
CROSS JOIN LATERAL (
    SELECT conversation_id, seq, head FROM lineage_entry
    WHERE conversation_id = s.conversation AND seq BETWEEN s.first AND s.last AND head IS NOT NULL
    ORDER BY seq DESC LIMIT 1
) e ORDER BY e.seq DESC LIMIT 1
"""
_LINES = """
SELECT e.seq, e.model, e.message_id, e.outcome <> '' AS left_out, e.edits
FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS s(conversation, first, last)
JOIN lineage_entry e ON e.conversation_id = s.conversation AND e.seq BETWEEN s.first AND s.last
WHERE e.model <> '' OR e.edits
ORDER BY e.seq
"""
_EDITS = """
SELECT DISTINCT ON (d.target) d.target, CASE d.action WHEN 'omit' THEN NULL ELSE d.messages END
FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS s(conversation, first, last)
JOIN lineage_entry e ON e.conversation_id = s.conversation AND e.seq BETWEEN s.first AND s.last AND e.edits
JOIN lineage_entryedit d ON d.entry_id = e.id
WHERE d.target >= %s
ORDER BY d.target, e.seq DESC
"""

_EDIT_OF_ONE = _EDITS.replace("d.target >= %s", "d.target = %s")
# Each range is read from its end through the index: the whole of a long one is never sorted. `upto` are the bytes of the
# line and of all behind it; their length is known without reading what lies outside of the row.
_NEWEST_LINES = """
SELECT t.seq, t.model, t.message_id, t.left_out, t.edits, t.upto FROM (
    SELECT e.seq, e.model, e.message_id, e.outcome <> '' AS left_out, e.edits,
           sum(octet_length(e.model)) OVER (ORDER BY e.seq DESC) AS upto
    FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS s(conversation, first, last)
    CROSS JOIN LATERAL (
        SELECT seq, model, message_id, outcome, edits FROM lineage_entry
        WHERE conversation_id = s.conversation AND seq BETWEEN s.first AND s.last AND (model <> '' OR edits)
        ORDER BY seq DESC LIMIT %s
    ) e ORDER BY e.seq DESC LIMIT %s
) t WHERE t.upto - octet_length(t.model) < %s ORDER BY t.seq
"""

_as_line = partial(tuple.__new__, Line)  # what `Line._make` does, without a call in Python for each of ten thousand
Range = tuple[int, int, int]


def visible_ranges(conversation: Conversation, at: int | None = None) -> list[Range]:
    """(conversation, first, last) of each segment that holds entries up to `at` (default: its head), oldest first."""
    top = conversation.head if at is None else at
    ranges: list[Range] = []
    start = 1
    for source, upto in conversation.segments:
        last = top if upto is None else min(upto, top)
        if last >= start:
            ranges.append((source, start, last))
            start = last + 1
    return ranges


def context_start(conversation: Conversation, at: int | None = None) -> tuple[int, int, int] | None:
    """(conversation, seq, first seq of the context) of the newest visible head entry, or none (L4)."""
    ranges = visible_ranges(conversation, at)
    if not ranges:
        return None
    with connection.cursor() as cursor:
        cursor.execute(_HEAD, _columns(ranges))
        found = cursor.fetchone()
    return (int(found[0]), int(found[1]), int(found[2])) if found else None


def load_context(conversation: Conversation, at: int | None = None) -> Context:
    """What the model reads at `at` (default: the newest entry). Two statements, a third where edits are visible."""
    ranges = visible_ranges(conversation, at)
    if not ranges:
        return Context(head=[], rest=[])
    start = context_start(conversation, at)
    first = 1 if start is None else start[2]
    shown = [(source, max(low, first), high) for source, low, high in ranges if high >= first]
    with connection.cursor() as cursor:
        cursor.execute(_LINES, _columns(shown))
        rows = cursor.fetchall()
        edits: dict[int, str | None] = {}
        if any(row[4] for row in rows):
            cursor.execute(_EDITS, [*_columns(shown), first])
            edits = dict(cursor.fetchall())
    lines = list(map(_as_line, rows))
    head = next((line for line in lines if start is not None and line.seq == start[1]), None)
    return derive_context(head=head, lines=lines, edits=edits)


@dataclass(frozen=True, kw_only=True)
class TailLines:
    """The newest lines of a context, ascending, and the newest edit of each. `whole`: there are no older ones."""

    lines: list[Line]
    edits: dict[int, str | None]
    whole: bool


def load_tail(ranges: list[Range], first: int, *, limit: int, size: int) -> TailLines:
    """The newest lines of the ranges from `first` on, until they have `size` bytes; at most `limit`. The rest is not read."""
    shown = [(source, max(low, first), high) for source, low, high in ranges if high >= first]
    edits: dict[int, str | None] = {}
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST_LINES, [*_columns(shown), limit, limit, size])
        rows = cursor.fetchall()
        lines = [Line._make(row[:5]) for row in rows]
        if any(line.edits for line in lines):
            cursor.execute(_EDITS, [*_columns(shown), lines[0].seq])
            edits = dict(cursor.fetchall())
    return TailLines(lines=lines, edits=edits, whole=not rows or (len(rows) < limit and rows[0][5] < size))


def load_head(ranges: list[Range], conversation: int, seq: int) -> Line:
    """A head's line as the newest edit of it reads."""
    row = Entry.objects.values_list("seq", "model", "message_id", "outcome").get(conversation=conversation, seq=seq)
    with connection.cursor() as cursor:
        cursor.execute(_EDIT_OF_ONE, [*_columns(ranges), seq])
        edit = cursor.fetchone()
    return Line(row[0], row[1] if edit is None else edit[1] or "", row[2], bool(row[3]) and edit is None)


def last_own_answer(conversation: Conversation) -> tuple[int, str]:
    """(seq, text) of the newest own non-blank assistant text that is still in context; (0, "") when there is none (L22).

    Looks from the end in pages. Lines of one answer (one message id) are read together, in order.
    """
    start = context_start(conversation)
    first = max(conversation.at + 1, start[2] if start else 1)
    rows = (
        Entry.objects.filter(conversation=conversation.pk, seq__gte=first)
        .exclude(model="")
        .order_by("-seq")
        .values_list("seq", "model", "message_id", "outcome")
    )
    below = conversation.head + 1
    while page := list(rows.filter(seq__lt=below)[:_PAGE]):
        edits = _edits_of(conversation, [row[0] for row in page])
        for seq, model, message_id, outcome in page:
            text = _own_text(seq, model, outcome, edits)
            if text and message_id:
                return seq, _whole_answer(conversation, max(first, seq - _ANSWER_SPAN), message_id) or text
            if text:
                return seq, text
        below = page[-1][0]
    return 0, ""


def _own_text(seq: int, model: str, outcome: str, edits: dict[int, str | None]) -> str:
    if seq in edits:
        return answer_text(parse_messages(edits[seq] or ""))
    return "" if outcome else answer_text(parse_messages(model))


def _whole_answer(conversation: Conversation, first: int, message_id: str) -> str:
    rows = list(
        Entry.objects.filter(conversation=conversation.pk, seq__gte=first, message_id=message_id)
        .order_by("seq")
        .values_list("seq", "model", "outcome")
    )
    edits = _edits_of(conversation, [row[0] for row in rows])
    return "\n".join(text for row in rows if (text := _own_text(*row, edits)))


def _edits_of(conversation: Conversation, seqs: list[int]) -> dict[int, str | None]:
    """The newest own edit of each of these own entries."""
    rows = EntryEdit.objects.filter(entry__conversation=conversation.pk, target__in=seqs).order_by("entry__seq")
    return {row.target: None if row.action == "omit" else row.messages for row in rows}


def _columns(ranges: list[Range]) -> list[list[int]]:
    return [[row[0] for row in ranges], [row[1] for row in ranges], [row[2] for row in ranges]]

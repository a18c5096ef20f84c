"""Looking for rows of a tree that contradict each other: for `manage.py verify`. Reads only.

One statement for each kind of fault over all rows, read as a stream, so that memory stays bounded whatever is stored.
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Count, F, Max, Min, Q

from console.clock import now
from lineage.models import Conversation
from lineage.tasks.claiming import LEASE

LONGEST_LEASE = LEASE + timedelta(minutes=5)  # beyond what clocks of several machines differ by


def conversation_faults() -> Iterator[str]:
    """A sentence for each fault."""
    yield from _gaps()
    for statement, sentence in _FAULTS:
        for row in _found(statement, []):
            yield sentence.format(*row)
    for row in _found(_LEASED, [now() + LONGEST_LEASE]):
        yield "task {} {}: it is leased until {}, longer than any worker leases it".format(*row)
    yield from _memory_faults()


def _gaps() -> Iterator[str]:
    """Conversations whose own entries do not run from their fork entry to their head without a gap (R3)."""
    rows = Conversation.objects.annotate(
        count=Count("entries"), first=Min("entries__seq"), last=Max("entries__seq")
    ).filter(
        ~Q(count=F("head") - F("at"))
        | Q(first__isnull=False) & ~Q(first=F("at") + 1)
        | Q(last__isnull=False) & ~Q(last=F("head"))
    )
    for row in rows.order_by("pk").iterator(chunk_size=500):
        yield (
            f"conversation #{row.pk}: {row.count} own entries, from {row.first} to {row.last}, "
            f"where {row.at + 1} to {row.head} are expected"
        )


# Each with the sentence that its columns fill, in order.
_FAULTS = (
    (  # L2: inherited and own entries are one line, so what an entry sees is what is numbered below it
        """
        SELECT e.conversation_id, e.seq, d.target FROM lineage_entryedit d JOIN lineage_entry e ON e.id = d.entry_id
        WHERE d.target < 1 OR d.target >= e.seq ORDER BY 1, 2
        """,
        "entry #{}/{}: it edits entry {}, which it does not see",
    ),
    (
        """
        SELECT conversation_id, seq, head FROM lineage_entry WHERE head IS NOT NULL AND (head < 1 OR head > seq)
        ORDER BY 1, 2
        """,
        "entry #{}/{}: the context begins at entry {}, which it does not see",
    ),
    (  # L3
        """
        SELECT c.id, c.parent_id, c.at FROM lineage_conversation c JOIN lineage_conversation p ON p.id = c.parent_id
        WHERE c.at > p.head ORDER BY 1
        """,
        "conversation #{}: it is forked from #{}/{}, which is not there",
    ),
    (  # L6
        """
        SELECT s.id, s.status, s.conversation_id, s.seq FROM lineage_submission s
        LEFT JOIN lineage_entry e ON e.conversation_id = s.conversation_id AND e.seq = s.seq
        WHERE s.seq IS NOT NULL AND e.id IS NULL ORDER BY 1
        """,
        "submission {}: it is {}, and its entry #{}/{} is not there",
    ),
    (
        """
        SELECT s.id FROM lineage_submission s LEFT JOIN lineage_task t ON t.id = s.task_id
        WHERE s.status = 'placed' AND (t.id IS NULL OR t.status = 'terminal') ORDER BY 1
        """,
        "submission {}: it is placed, and no live task answers it",
    ),
    (  # L23: the key is caller, target and answer; 0 is no answer, which is told once per request. The text of an answer
        # stands in quotes that are escaped, so the pattern finds the key itself.
        """
        SELECT s.conversation_id, count(*), n.sender_id, substring(s.data FROM '"answer":(\\d+)') AS answer
        FROM lineage_note n JOIN lineage_submission s ON s.id = n.submission_id
        WHERE n.source = 'finished' GROUP BY 1, 3, 4
        HAVING count(*) > 1 AND substring(s.data FROM '"answer":(\\d+)') <> '0' ORDER BY 1, 3, 4
        """,
        "conversation #{}: it was told {} times of the answer #{}/{}",
    ),
    (
        """
        SELECT d.caller_id, d.target_id, d.answer FROM lineage_delivered d
        JOIN lineage_conversation c ON c.id = d.target_id WHERE d.answer > c.head ORDER BY 1, 2
        """,
        "conversation #{}: it was told of the answer #{}/{}, which is not there",
    ),
    (  # L9
        """
        SELECT t.id, t.kind, t.conversation_id FROM lineage_task t
        LEFT JOIN lineage_conversation c ON c.id = t.conversation_id WHERE c.id IS NULL ORDER BY 1
        """,
        "task {} {}: its conversation #{} is not there",
    ),
    (
        """
        SELECT t.id, t.kind, t.parent_id FROM lineage_task t LEFT JOIN lineage_task p ON p.id = t.parent_id
        WHERE t.status <> 'terminal' AND t.parent_id IS NOT NULL AND (p.id IS NULL OR p.status = 'terminal') ORDER BY 1
        """,
        "task {} {}: it lives, and the task {} that it belongs to does not",
    ),
    (
        """
        SELECT t.id, t.kind FROM lineage_task t WHERE t.status = 'completing' AND NOT EXISTS (
            SELECT 1 FROM lineage_task c WHERE c.parent_id = t.id AND c.status <> 'terminal'
        ) ORDER BY 1
        """,
        "task {} {}: it waits for its children to end, and none lives",
    ),
    (
        """
        SELECT t.id, t.kind, t.subject FROM lineage_task t,
            LATERAL (SELECT split_part(t.subject, ':', 1) AS kind, substring(t.subject FROM ':(\\d{1,18})$')::bigint AS id) s
        WHERE t.status = 'waiting' AND NOT CASE s.kind
            WHEN 'conversation' THEN EXISTS (SELECT 1 FROM lineage_conversation WHERE id = s.id)
            WHEN 'task' THEN EXISTS (SELECT 1 FROM lineage_task WHERE id = s.id)
            WHEN 'children' THEN EXISTS (SELECT 1 FROM lineage_task WHERE id = s.id)
            WHEN 'approval' THEN EXISTS (SELECT 1 FROM lineage_approval WHERE id = s.id)
            ELSE true END ORDER BY 1
        """,
        "task {} {}: it waits for {}, which is not there",
    ),
    (  # L18
        """
        SELECT a.conversation_id, a.root_id, a.anchor FROM lineage_openabstract a
        LEFT JOIN lineage_entry e ON e.conversation_id = a.root_id AND e.seq = a.anchor AND e.kind = 'lineage.abstract'
        WHERE e.id IS NULL ORDER BY 1
        """,
        "abstract of #{}: its anchor #{}/{} is not there",
    ),
    (
        """
        SELECT l.root_id, l.seq, l.kind FROM lineage_tallyline l
        LEFT JOIN lineage_entry e ON e.conversation_id = l.root_id AND e.seq = l.seq WHERE e.id IS NULL ORDER BY 1, 2
        """,
        "tally of #{0}: its entry #{0}/{1} of a {2} is not there",
    ),
    (  # L19, L20: the note has the landing's key; until a task has written it, the task lives
        """
        SELECT l.id, l.sha, l.root_id FROM lineage_landing l
        JOIN lineage_root r ON r.conversation_id = l.root_id AND r.since IS NOT NULL
        JOIN lineage_conversation c ON c.id = l.conversation_id AND c.kind <> 'root'
        WHERE NOT l.restored AND NOT EXISTS (
            SELECT 1 FROM console_request q WHERE q.receiver = 'conversation:' || l.root_id
                AND q.request_id = 'landing:' || l.id AND q.actor_id IS NULL
        ) AND NOT EXISTS (
            SELECT 1 FROM lineage_task t WHERE t.conversation_id = l.root_id AND t.kind = 'landing-note'
                AND t.status <> 'terminal' AND t.input = '{"landing":' || l.id || '}'
        ) ORDER BY 1
        """,
        "landing {} of {:.7}: the tally #{} has no note of it",
    ),
    (  # L26
        """
        SELECT root_id, slug, version, ordinal FROM (
            SELECT root_id, slug, version, ordinal, before,
                lag(after, 1, '') OVER (PARTITION BY root_id, slug ORDER BY version, ordinal) AS left_behind
            FROM lineage_memorychange
        ) h WHERE before <> left_behind ORDER BY 1, 2, 3, 4
        """,
        "memory {1} of #{0}: its change {2}.{3} does not follow from the one before",
    ),
)

_LEASED = "SELECT id, kind, lease_until FROM lineage_task WHERE lease_until > %s ORDER BY id"

_MEMORIES = """
SELECT coalesce(h.root_id, m.root_id), coalesce(h.slug, m.slug), coalesce(h.after, ''), m.kind, m.line, m.body, m.source
FROM (
    SELECT DISTINCT ON (root_id, slug) root_id, slug, after FROM lineage_memorychange
    ORDER BY root_id, slug, version DESC, ordinal DESC
) h FULL JOIN lineage_memory m ON m.root_id = h.root_id AND m.slug = h.slug ORDER BY 1, 2
"""


def _memory_faults() -> Iterator[str]:
    """Memories that are not what their history left (L26)."""
    for root, slug, after, *stored in _found(_MEMORIES, []):
        kept = None if stored[0] is None else dict(zip(("kind", "line", "body", "source"), stored, strict=True))
        if kept != (json.loads(after) if after else None):
            yield f"memory {slug} of #{root}: it is not what its history left"


def _found(statement: str, values: list[Any]) -> Iterator[tuple[Any, ...]]:
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, values or None)
        yield from cursor

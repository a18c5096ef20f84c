"""Comparing the board with what it was folded from (R9): for `manage.py verify`. Reads only.

One statement for each kind of fault, so that each compares one moment; what is touched waits for its fold and is left out.
"""

from collections.abc import Iterator

from django.db import connection

from console.board.models import NEEDING

_ROWS = """
SELECT c.id, t.state, t.head, c.state, c.head FROM lineage_conversation c
LEFT JOIN console_treerow t ON t.conversation = c.id
WHERE (t.conversation IS NULL OR t.state <> c.state OR t.head <> c.head OR t.root <> c.root_id)
    AND NOT EXISTS (SELECT 1 FROM console_touched WHERE conversation = c.id)
ORDER BY 1
"""
_COUNTERS = """
SELECT b.root, b.states::text, b.needing, coalesce(t.states, '{}')::text, coalesce(t.needing, 0)
FROM console_boardrow b LEFT JOIN (
    SELECT root, coalesce(jsonb_object_agg(state, counted) FILTER (WHERE counted > 0), '{}') AS states, sum(needing) AS needing
    FROM (
        SELECT root, state, count(*) FILTER (WHERE counted) AS counted, count(*) FILTER (WHERE state = ANY(%s)) AS needing
        FROM console_treerow GROUP BY root, state
    ) s GROUP BY root
) t ON t.root = b.root
WHERE b.states <> coalesce(t.states, '{}') OR b.needing <> coalesce(t.needing, 0)
ORDER BY 1
"""


def board_faults() -> Iterator[str]:
    """A sentence for each row that is not what its conversation is, and for each counter that is not what its rows count."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(_ROWS)
        for pk, state, head, is_state, is_head in cursor:
            said = "is missing" if state is None else f"says {state} at entry {head}"
            yield f"board: the row of #{pk} {said}, and the conversation is {is_state} at entry {is_head}"
    with connection.chunked_cursor() as cursor:
        cursor.execute(_COUNTERS, [list(NEEDING)])
        for root, states, needing, counted, needed in cursor:
            yield (
                f"board: the root #{root} counts {states} and {needing} that need a person, where its rows count {counted} "
                f"and {needed}"
            )

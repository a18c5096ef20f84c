"""Assembling a model request at the end of a long conversation (A1: 20 ms at 50,000 entries).

uv run python -m tests.bench.requests --entries 50000
"""

import argparse
import json
import statistics
import time
from typing import TYPE_CHECKING

from tests.bench.place import own_console

if TYPE_CHECKING:
    from lineage.models import Conversation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=50_000)
    parser.add_argument("--characters", type=int, default=1_000)
    parser.add_argument("--times", type=int, default=50)
    options = parser.parse_args()
    with own_console():
        for entries in (50, options.entries):
            measure(entries, options.characters, options.times)


def measure(entries: int, characters: int, times: int) -> None:
    from lineage.agent.history import tails_of
    from lineage.agent.inputs import inputs_of
    from lineage.agent.request import assemble

    row = fill(entries, characters)
    took = []
    for _ in range(times):
        began = time.perf_counter()
        request = assemble(inputs_of(row, model="m", name="wren"), tails_of(row))
        took.append((time.perf_counter() - began) * 1000)
    print(
        f"{entries:>7} entries of {characters} characters: {len(request.body):>7} bytes, "
        f"p50 {statistics.median(took):.1f} ms, min {min(took):.1f} ms, {request.ledger.entries_left_out} left out"
    )


def fill(entries: int, characters: int) -> "Conversation":
    """A root with so many entries, prompts and answers in turn."""
    from django.db import connection

    from lineage.actions.roots import create_root
    from lineage.models import Conversation as Rows

    row = create_root(who=None, title="Long").conversation
    texts = [json.dumps([{"role": role, "content": "x" * characters}]) for role in ("user", "assistant")]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO lineage_entry (conversation_id, seq, kind, time, model, data, rest, edits, message_id, outcome,"
            " prompt) SELECT %s, n, 'user', now(), CASE n %% 2 WHEN 1 THEN %s ELSE %s END, '{}', false, false, '', '', ''"
            " FROM generate_series(1, %s) n",
            [row.pk, *texts, entries - 1 + entries % 2],
        )
        cursor.execute("ANALYZE lineage_entry")
    Rows.objects.filter(pk=row.pk).update(head=entries - 1 + entries % 2)
    row.refresh_from_db()
    return row


if __name__ == "__main__":
    main()

"""Marks: rows that say which conversations a keeper has to look at. Writers leave them, the keeper takes them away (R9, C5)."""

from django.db import connection

from console.models import SearchDue, Touched


def take_marks(marks: type[Touched] | type[SearchDue], limit: int) -> set[int]:
    """The conversations of the oldest marks, which are gone with the caller's transaction. Only those that are committed:
    what other transactions leave meanwhile is taken the next time."""
    table = marks._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} ORDER BY id LIMIT %s) RETURNING conversation",  # noqa: S608
            [limit],
        )
        return {row[0] for row in cursor.fetchall()}

"""Bringing the database up to the code, by whoever comes first."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

MIGRATION_LOCK = 0x6C63_6D69  # any number that no other advisory lock of the console uses


def migrate_database() -> None:
    """Apply what is missing. Of several processes one does it, the others wait for it."""
    if _pending():
        call_command("migrate", verbosity=0, interactive=False)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold the lock of migrating: a later holder finds everything applied."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])


def _pending() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))

"""`manage.py migrate`: Django's own, made safe to run from several machines at once."""

from typing import Any

from django.core.management.commands import migrate

from console.migrating import one_at_a_time


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with one_at_a_time():
            super().handle(*args, **options)

"""`manage.py frontend`: builds the front end, if it is stale. `up` does the same by itself."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from console import frontend


class Command(BaseCommand):
    help = "Installs the front end's packages and builds its bundle, unless both are fresh."
    requires_system_checks: list[str] = []  # noqa: RUF012 -- Django's own declaration; no database is needed

    def handle(self, *args: Any, **options: Any) -> None:
        if not frontend.is_stale():
            self.stdout.write("The front end is built already.")
            return
        try:
            frontend.build(progress=self.stdout.write)
        except frontend.FrontendError as error:
            raise CommandError(str(error)) from error
        self.stdout.write("The front end is built.")

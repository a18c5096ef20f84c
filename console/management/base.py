"""What every command of the console shares: `--data`, a database that fits the code, refusals in one sentence."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from console.embedded import CannotStart
from console.errors import DomainError
from console.migrating import migrate_database


class ConsoleCommand(BaseCommand):
    """A command that works beside a running `up` or with engines of its own: `console.commandline` sees to them.

    It prints what it made on stdout and everything else on stderr.
    """

    requires_system_checks = ()  # `manage.py check` and the tests run them
    migrates = True

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Says that `--data` exists; it is taken from the words before Django starts."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument("--data", metavar="DIR", help="the data directory (default: .console, or CONSOLE_DATA)")
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Bring the database up to the code first; show an expected refusal as its sentence, with exit code 1."""
        try:
            if self.migrates:
                migrate_database()
            return super().execute(*args, **options)
        except (DomainError, CannotStart) as error:
            if not getattr(self, "_called_from_command_line", False):
                raise
            print(error, file=sys.stderr)
            sys.exit(1)

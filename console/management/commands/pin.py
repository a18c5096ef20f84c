"""`manage.py pin`: writes the exact version of every package into `pyproject.toml`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.data import CHECKOUT
from console.pinning import PinError, pinned


class Command(BaseCommand):
    help = "Pins every package, direct or not, in pyproject.toml. Run it after changing the dependencies."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--upgrade", action="store_true", help="choose all versions anew, not only new packages'")

    def handle(self, *args: Any, **options: Any) -> None:
        path = CHECKOUT / "pyproject.toml"
        before = path.read_text()
        try:
            after = pinned(before, upgrade=options["upgrade"])
        except PinError as error:
            raise CommandError(str(error)) from error
        path.write_text(after)
        self.stdout.write("Every package was pinned already." if after == before else "pyproject.toml has new pins.")

"""`manage.py signin`: a one-time link that signs a person in."""

from typing import Any

from django.core.management.base import CommandParser

from console import data
from console.actions.people import make_signin_link
from console.management.base import ConsoleCommand


class Command(ConsoleCommand):
    help = "Print a one-time sign-in link; it works once and for 24 hours."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--create", action="store_true", help="make the account when there is none")
        parser.add_argument("--url", metavar="URL", help="where the console is reached (default: the running one)")

    def handle(self, *args: Any, **options: Any) -> None:
        secret = make_signin_link(username=options["username"], create=options["create"])
        self.stdout.write(f"{(options['url'] or data.public_url()).rstrip('/')}/signin/{secret}/")

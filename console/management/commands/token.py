"""`manage.py token`: a bearer token for an agent, shown once."""

from typing import Any

from django.core.management.base import CommandParser

from console.management.base import ConsoleCommand
from console.models import Role
from lineage.actions.roots import create_root
from lineage.actions.tokens import make_token


class Command(ConsoleCommand):
    help = "Print a bearer token as the only line on stdout. It is shown this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what the agent is called")
        parser.add_argument("--root", required=True, help="the number of a root, or new for an empty one")
        parser.add_argument("--conversation", type=int, metavar="ID", help="an existing conversation of that root")
        parser.add_argument("--role", choices=["agent", "operator", "viewer"], default="agent")
        parser.add_argument("--main", action="store_true", help="make it the root's main agent")
        parser.add_argument("--days", type=int, metavar="N", help="let it expire after so many days")

    def handle(self, *args: Any, **options: Any) -> None:
        root, conversation = options["root"], options["conversation"]
        if root == "new":
            number = create_root(who=None, title=options["name"]).pk
            conversation = conversation or number
        else:
            number = _number(root)
        made = make_token(
            who=None,
            name=options["name"],
            root=number,
            conversation=conversation,
            role=Role(options["role"]),
            main=options["main"],
            days=options["days"],
        )
        place = f"conversation #{made.token.conversation_id} of root #{number}"
        self.stderr.write(f"A token for {made.token.actor} ({made.token.role}), {place}. It is not shown again.")
        self.stdout.write(made.secret)


def _number(text: str) -> int:
    return int(text.lstrip("#")) if text.lstrip("#").isdecimal() and len(text) < 19 else 0

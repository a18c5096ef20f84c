"""`manage.py restore`: the tree of an export in again, with its numbers, or a refusal."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from console.archive.layout import Manifest
from console.archive.restoring import restore_root
from console.management.base import ConsoleCommand


class Command(ConsoleCommand):
    help = "Bring the tree of an export in. Conversations and documents keep their numbers, or nothing is restored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path, help="what the command export wrote")
        parser.add_argument("--owner", metavar="USERNAME", help="who becomes owner; without it only superusers see it")

    def handle(self, *args: Any, **options: Any) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        stderr = Console(stderr=True)
        with Progress(*columns, console=stderr, transient=True, disable=not sys.stderr.isatty()) as shown:

            def begin(manifest: Manifest) -> Callable[[int], None]:
                task = shown.add_task("Restoring", total=sum(part.rows for part in manifest.tables.values()))
                return lambda rows: shown.advance(task, rows)

            made = restore_root(path=options["file"], owner=options["owner"], begin=begin)
        rows = {name: part.rows for name, part in made.tables.items()}
        self.stdout.write(
            f"#{made.root} {made.title}: {rows['conversation']} conversations, {rows['entry']} entries,"
            f" {rows['document']} documents, {rows['attachment']} attachments, as of {made.exported}."
        )
        self.stderr.write("Nothing that was under way goes on. Agents outside need new tokens: manage.py token.")

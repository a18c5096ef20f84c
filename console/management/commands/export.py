"""`manage.py export`: a whole tree as one file."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from console.archive.exporting import export_root
from console.errors import NotFound
from console.management.base import ConsoleCommand


class Command(ConsoleCommand):
    help = "Write a whole tree into one file. A file of that name is replaced once the new one is whole."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("root", metavar="ROOT", help="the number of a root")
        parser.add_argument("file", metavar="FILE", type=Path, help="the file to write, such as tree.zip")

    def handle(self, *args: Any, **options: Any) -> None:
        root, path = str(options["root"]).lstrip("#"), options["file"]
        if not root.isdecimal() or len(root) > 18:
            raise NotFound("root", root[:40])
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        stderr = Console(stderr=True)
        with Progress(*columns, console=stderr, transient=True, disable=not sys.stderr.isatty()) as shown:
            task = shown.add_task("Writing", total=None)
            made = export_root(
                root=int(root),
                path=path,
                progress=lambda table, rows: shown.update(task, description=f"Writing {table}: {rows}"),
            )
        rows = {name: part.rows for name, part in made.tables.items()}
        self.stdout.write(
            f"#{made.root} {made.title}: {rows['conversation']} conversations, {rows['entry']} entries,"
            f" {rows['document']} documents, {rows['attachment']} attachments in {path}, {path.stat().st_size} bytes."
        )

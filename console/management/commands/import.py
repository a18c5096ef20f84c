"""`manage.py import`: session files of Claude Code, Codex and pi, once. Again changes nothing."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from console.errors import Invalid
from console.management.base import ConsoleCommand
from lineage.actions.imports import checked_root
from lineage.transcripts.folders import find_folders
from lineage.transcripts.importing import import_folders
from lineage.transcripts.summaries import Totals, summarise


class Command(ConsoleCommand):
    help = "Import session files of Claude Code, Codex and pi: files, or folders with all below them. Again changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", type=Path, help="a session file, or a folder")
        parser.add_argument(
            "--root", type=int, metavar="ID", help="put sessions under this root, not under their folder's"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        paths: list[Path] = options["paths"]
        for path in paths:
            if not path.exists():
                raise Invalid("path", f"There is nothing at {path}. Give a session file, or a folder that holds some.")
        root = checked_root(options["root"]) if options["root"] is not None else None
        totals = Totals()
        folders, others = find_folders(paths)
        size = sum(file.path.stat().st_size for folder in folders for file in folder.files if file.path.exists())
        with _progress() as progress:
            task = progress.add_task("Reading", total=size)
            for folder in folders:
                readings = list(import_folders([folder], root=root, progress=lambda done: progress.advance(task, done)))
                for line in summarise(readings, totals):
                    progress.console.print(line, soft_wrap=True) if progress.disable is False else self.stdout.write(
                        line
                    )
        for line in totals.lines(len(others)):
            self.stdout.write(line)
        if totals.failed:
            sys.exit(1)


def _progress() -> Progress:
    """Bytes done of all bytes, on stderr and only where somebody looks."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())

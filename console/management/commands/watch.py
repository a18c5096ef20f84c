"""`manage.py watch`: imports session files, then follows them as agents write on. `up --watch DIR` runs it."""

import signal
import threading
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from console.management.base import ConsoleCommand
from lineage.actions.imports import checked_root
from lineage.transcripts.folders import default_folders
from lineage.transcripts.following import Follower, follow_until
from lineage.transcripts.importing import Reading
from lineage.transcripts.summaries import Totals, summarise


class Command(ConsoleCommand):
    help = "Import session files of Claude Code, Codex and pi, then follow them until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "paths",
            nargs="*",
            metavar="PATH",
            type=Path,
            help="session files or folders, which need not be there yet (default: where the three agents write)",
        )
        parser.add_argument(
            "--root", type=int, metavar="ID", help="put sessions under this root, not under their folder's"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        root = checked_root(options["root"]) if options["root"] is not None else None
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        paths: list[Path] = options["paths"] or default_folders()
        self.stdout.write(f"Following {', '.join(map(str, paths))}")
        follow_until(stopped, Follower(paths, root=root), self.tell)

    def tell(self, readings: list[Reading]) -> None:
        """A line for each session that changed."""
        totals = Totals()
        for line in [*summarise(readings, totals, quiet=True), *totals.failed]:
            self.stdout.write(line)
        if totals.entries:
            self.stdout.flush()

"""`manage.py land`: records merged work of a git repository."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from console.errors import NotFound
from console.management.base import ConsoleCommand
from lineage.actions.landings import NewLanding, record_landing
from lineage.repositories import read_merged
from lineage.trees import find_conversation


class Command(ConsoleCommand):
    help = "Read the commits of a git repository from a base to its tip, and record them as landed from a conversation."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--repo", required=True, metavar="DIR", help="the repository, on the branch that it landed on"
        )
        parser.add_argument("--base", required=True, metavar="REF", help="the tip before it landed")
        parser.add_argument("--conversation", required=True, type=int, metavar="ID", help="who did it")
        parser.add_argument("--at", type=int, metavar="N", help="the entry it stood at (default: the newest)")
        parser.add_argument("--title", metavar="T", help="what landed (default: the newest commit's subject)")
        parser.add_argument("--summary", metavar="S", default="", help="for people; models never read it")
        parser.add_argument("--feature", metavar="F", default="", help="the part of the product")

    def handle(self, *args: Any, **options: Any) -> None:
        merged = read_merged(Path(options["repo"]), options["base"])
        row = find_conversation(options["conversation"])
        if row is None:
            raise NotFound("conversation", f"#{options['conversation']}")
        new = NewLanding(
            at=row.head if options["at"] is None else options["at"],
            sha=merged.sha,
            base=merged.base,
            target=merged.target,
            commits=merged.commits,
            commit_count=merged.commit_count,
            paths=merged.paths,
            divergence=merged.divergence,
            title=options["title"] or merged.subject,
            summary=options["summary"],
            feature=options["feature"],
            pushed=merged.pushed,
            lander=merged.lander,
        )
        # The same commit lands once on a branch from a conversation: the command is safe to run twice.
        key = f"land:{merged.sha}:{merged.target}:{row.pk}"
        done = record_landing(who=None, conversation=row.pk, new=new, request_id=key)
        said = {
            "noted": f"noted at #{done['root']}/{done['note']}",
            "pending": f"a note for #{done['root']} is on its way",
            "stored": "stored without a note",
        }[done["status"]]
        commits = "1 commit" if merged.commit_count == 1 else f"{merged.commit_count} commits"
        self.stdout.write(f"Landed {merged.sha[:7]} on {merged.target} from #{row.pk} ({commits}): {said}.")

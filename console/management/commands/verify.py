"""`manage.py verify`: folds every document again and checks every stream for gaps."""

import sys
from itertools import chain
from typing import Any

from console.management.base import ConsoleCommand
from documents.verifying import document_faults
from lineage.verifying import conversation_faults


class Command(ConsoleCommand):
    help = "Fold every document again, check every stream for gaps; print a line per fault and end with 1 on any."

    def handle(self, *args: Any, **options: Any) -> None:
        faults = 0
        for fault in chain(document_faults(), conversation_faults()):
            faults += 1
            self.stdout.write(fault)
        if faults:
            sys.exit(1)
        self.stderr.write("Every document folds to what is kept, and no stream has a gap.")

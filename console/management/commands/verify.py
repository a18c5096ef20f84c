"""`manage.py verify`: folds every document again, checks every stream for gaps, and looks for rows that contradict each other."""

import sys
from itertools import chain
from typing import Any

from console.board.verifying import board_faults
from console.management.base import ConsoleCommand
from documents.attachments.verifying import attachment_faults
from documents.verifying import document_faults
from lineage.verifying import conversation_faults


class Command(ConsoleCommand):
    help = (
        "Fold every document again, check every stream for gaps, and compare submissions, deliveries, tasks, tallies, memories, "
        "attachments and the board with what they tell of; print a line per fault and end with 1 on any."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        faults = 0
        for fault in chain(document_faults(), attachment_faults(), conversation_faults(), board_faults()):
            faults += 1
            self.stdout.write(fault)
        if faults:
            sys.exit(1)
        self.stderr.write("Every document folds to what is kept, no stream has a gap, and no row contradicts another.")

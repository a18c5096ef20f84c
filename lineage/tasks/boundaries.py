"""A hook for tests of L10: end this process without warning at a named boundary of a phase.

`CONSOLE_EXIT_AT=notify:wait:commit` ends it where a notify task's phase wait is about to commit. Points are `begin`
(claimed, nothing done), `commit` (everything written, not yet committed) and `committed`. Off unless the variable is set.
"""

import os

from django.conf import settings

POINTS = ("begin", "commit", "committed")
EXIT_STATUS = 137  # what a shell reports of a process that was killed


def pass_boundary(kind: str, phase: str, point: str) -> None:
    """End here, if it is here."""
    if settings.EXIT_AT and f"{kind}:{phase}:{point}" == settings.EXIT_AT:
        os._exit(EXIT_STATUS)

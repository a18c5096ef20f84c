"""Durable work (L9–L11): rows with leases, phases that each end in a commit, waits without workers.

`definitions` says what kinds there are, `claiming` gives rows to workers, `running` is what a phase is handed, `working` runs
what was claimed, `nudges` carries hints through Celery, `sweeping` finds what the hints lost. `lineage.actions.tasks` makes
tasks, aborts and retries them.
"""

from lineage.tasks import nudges

__all__ = ["nudges"]  # Celery finds its tasks by importing this package

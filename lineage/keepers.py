"""Periodic work of this app, one process of all machines at a time."""

from console.keeper import keep
from lineage.actions.approvals import expire_approvals
from lineage.tasks.sweeping import sweep_tasks

keep("tasks", every=1.0)(sweep_tasks)
keep("approvals", every=60.0)(expire_approvals)

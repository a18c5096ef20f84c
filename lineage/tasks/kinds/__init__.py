"""The kinds of task that this app defines. Importing this package makes them known (L9)."""

from lineage.agent import summaries
from lineage.tasks.kinds import extract, generation, landing_note, memorize, notify, prompt, summarise, tool

__all__ = [
    "extract",
    "generation",
    "landing_note",
    "memorize",
    "notify",
    "prompt",
    "summaries",
    "summarise",
    "tool",
]

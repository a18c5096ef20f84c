"""Periodic work of this app, one process of all machines at a time."""

from console.board.keeping import fold_touched, refresh_for_time
from console.keeper import keep
from console.search.keeping import read_documents, read_due


def refresh_clock() -> bool:
    """Days and hours that have passed since the last look."""
    refresh_for_time()
    return False


keep("board", every=0.1)(fold_touched)  # R9: a change is on every dashboard within a second
keep("board-clock", every=5.0)(refresh_clock)
keep("search", every=0.5)(read_due)  # C5: found within some seconds
keep("search-documents", every=5.0)(read_documents)

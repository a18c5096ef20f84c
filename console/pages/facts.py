"""What the right pane and the head of a conversation tell beside its entries."""

from datetime import timedelta
from typing import Any

from console.clock import now
from lineage.models import Conversation, State
from lineage.sent import sent_requests
from lineage.state import conversation_state, subtree_usage
from lineage.waits import callers_of

# Programs whose transcripts are imported: what they run is steered where they run.
IMPORTED = {"claude": "Claude Code", "codex": "Codex", "pi": "pi"}
# An outside agent that says nothing for so long may have ended without a word: its dot is greyed, and nothing else (L8).
SILENCE = timedelta(minutes=10)
# Who takes what is sent: the console's own runs, an agent that reads its inbox, or nobody.
STEERED = {"imported": "nowhere", "session": "inbox"}


def facts_of(row: Conversation) -> dict[str, Any]:
    """`state` as the socket sends it, and usage: own, and with subagents where there are any."""
    state = conversation_state(row)
    tree = subtree_usage(row.pk)
    steered = STEERED.get("imported" if row.source in IMPORTED else str(row.kind), "here")
    return {
        "state": state,
        "waiting": {"targets": state["waits"], "callers": callers_of(row.pk)},
        "usage": state["usage"],
        "tree_usage": tree if tree != state["usage"] else None,
        "own_entries": row.head - row.at,
        "source": IMPORTED.get(row.source, row.source),
        "steered": steered,
        "silent": steered != "here" and row.state == State.RUNNING and now() - row.touched > SILENCE,
        "sent": next(iter(sent_requests(row, limit=1)), None),
    }

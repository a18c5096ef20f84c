"""Rows of the board as JSON, for the live socket and for pages that put them in place (CONTRACT, WebSocket)."""

from typing import Any

from console.board.models import BoardRow, TreeRow
from console.board.moments import hour_start
from lineage.models import Conversation


def root_json(row: BoardRow) -> dict[str, Any]:
    """A root on the dashboard.

    `states` counts its conversations by state (C2), those at zero left out; `needs` what waits for a person, the oldest
    first, at most 20 of `needing`. `landed_today` and `cost_today_micros` (millionths of a dollar, none where unknown) are
    of the day `day`; `activity` counts entries in each of 24 hours, the last one beginning at `activity_hour`.
    """
    return {
        "row": "root",
        "root": row.root,
        "version": row.version,
        "title": row.title,
        "states": row.states,
        "needs": row.needs,
        "needing": row.needing,
        "last": row.last,
        "touched": row.touched.isoformat(),
        "day": row.day.isoformat(),
        "landed_today": row.landed,
        "cost_today_micros": row.cost_micros,
        "activity": row.activity,
        "activity_hour": hour_start(row.hour).isoformat(),
    }


def gone_json(root: int, version: int) -> dict[str, Any]:
    """A root that was erased."""
    return {"row": "root", "root": root, "version": version, "gone": True}


def outline_json(row: TreeRow, conversation: Conversation) -> dict[str, Any]:
    """A conversation in the outline of its root."""
    return {
        "row": "conversation",
        "root": row.root,
        "conversation": row.conversation,
        "version": row.version,
        "kind": conversation.kind,
        "parent": conversation.parent_id,
        "at": conversation.at or None,
        "owner": conversation.owner_id,
        "started_from": conversation.started_from_id,
        "title": conversation.title,
        "state": conversation.state,
        "why": conversation.state_why,
        "since": conversation.state_since.isoformat(),
        "head": conversation.head,
        "touched": conversation.touched.isoformat(),
        "last": row.last,
    }

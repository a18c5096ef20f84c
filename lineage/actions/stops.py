"""Stopping (CONTRACT): ends a run and all that it waits for."""

from typing import Any

from django.db import transaction

from console.access import Permission, Who
from lineage.access import conversation_for
from lineage.actions.entries import NewEntry, place_entries
from lineage.actions.locks import lock_all
from lineage.actions.runs import STOPPED
from lineage.actions.settling import owned_by, set_turn, settle
from lineage.actions.submissions import withdraw_queued
from lineage.actions.tasks import abort_tasks_of
from lineage.models import Conversation, Kind, Submission, SubmissionStatus, SubmissionType


def stop_conversation(*, who: Who, conversation: int) -> dict[str, Any]:
    """End the run of a conversation and of all that it owns; queued inputs are withdrawn, so that none starts the next one.

    Answers `{stopped, withdrawn}`: the conversations that were at work, and the submissions taken back. An agent may stop only
    its own. Refusals: `not_found`, `forbidden`.
    """
    own = who.is_agent and who.conversation == conversation
    conversation_for(who, conversation, Permission.WRITE if own else Permission.DECIDE)
    with transaction.atomic():
        _, rows = lock_all(conversations=[conversation, *owned_by(conversation)])
        stopped: list[int] = []
        withdrawn: list[int] = []
        for row in sorted(rows.values(), key=lambda found: -found.pk):  # children first, so that owners find them idle
            withdrawn += _withdraw_inputs(row)
            worked = abort_tasks_of(conversation=row) > 0
            if row.turn_open:
                worked = True
                place_entries(
                    conversation=row,
                    entries=[NewEntry(kind="turn_end", data={"stopped": True, "by": who.name}, author=who.actor)],
                )
                set_turn(conversation=row, open=False)
            settle(conversation=row, announce=True)
            if worked:
                stopped.append(row.pk)
    return {"stopped": sorted(stopped), "withdrawn": withdrawn}


def _withdraw_inputs(row: Conversation) -> list[int]:
    if row.kind == Kind.SESSION:
        return []  # mail stays for its reader
    queued = Submission.objects.filter(
        conversation=row, status=SubmissionStatus.QUEUED, type=SubmissionType.INPUT
    ).order_by("pk")
    found = list(queued)
    for submission in found:
        withdraw_queued(submission, reason=STOPPED[0], why=STOPPED[1])
    return [submission.pk for submission in found]

"""Who waits for whom: the notifies that are still to be told (L22), as pages show them. Reads only."""

import json
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Q

from lineage.actions.wakes import conversation_subject
from lineage.models import Task, TaskStatus

Waits = dict[int, list[int]]


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """`targets`: for whom each conversation waits; `callers`: who waits for it. In the order of asking."""

    targets: Waits
    callers: Waits


def waits_among(conversations: Collection[int]) -> Waiting:
    """Both directions for these conversations, in one statement."""
    return _waiting(Q(conversation__in=conversations) | _awaiting(conversations))


def targets_of(conversations: Collection[int]) -> Waits:
    """For whom each of these waits, in one statement."""
    return _waiting(Q(conversation__in=conversations)).targets


def callers_of(conversation: int) -> list[int]:
    """Who waits for it."""
    return _waiting(_awaiting([conversation])).callers.get(conversation, [])


def _awaiting(targets: Collection[int]) -> Q:
    return Q(status=TaskStatus.WAITING, subject__in=[conversation_subject(pk) for pk in targets])


def _waiting(which: Q) -> Waiting:
    targets: Waits = defaultdict(list)
    callers: Waits = defaultdict(list)
    # One that runs is being told in the transaction that looks here, or parks again in a moment.
    waiting = [TaskStatus.PENDING, TaskStatus.WAITING]
    rows = Task.objects.filter(which, kind="notify", status__in=waiting).order_by("pk")
    for caller, given in rows.values_list("conversation", "input"):
        target = int(json.loads(given)["target"])
        targets[caller].append(target)
        callers[target].append(caller)
    return Waiting(targets=targets, callers=callers)

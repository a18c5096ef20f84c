"""Who reads what a session is sent (L24): the agent of a live token, through its inbox or beside each of its MCP answers."""

from collections.abc import Sequence

from django.db.models import Q

from console.clock import now
from console.models import Token
from lineage.models import Conversation, Kind


def has_reader(conversation: Conversation) -> bool:
    """Whether a live token belongs to this session. Mail waits for its reader; without one it is placed like any write."""
    return bool(readers_among([conversation]))


def readers_among(conversations: Sequence[Conversation]) -> set[int]:
    """The same for many: the numbers of those that have a reader."""
    sessions = [conversation.pk for conversation in conversations if conversation.kind == Kind.SESSION]
    if not sessions:
        return set()
    live = Token.objects.filter(conversation__in=sessions, revoked__isnull=True, actor__closed__isnull=True)
    live = live.filter(Q(expires__isnull=True) | Q(expires__gt=now()))
    return set(live.values_list("conversation_id", flat=True))

"""Looking for gaps in every stream of entries (R3): for `manage.py verify`. One query for all conversations."""

from collections.abc import Iterator

from django.db.models import Count, F, Max, Min, Q

from lineage.models import Conversation


def conversation_faults() -> Iterator[str]:
    """A sentence for each conversation whose own entries do not run from its fork entry to its head without a gap."""
    rows = Conversation.objects.annotate(
        count=Count("entries"), first=Min("entries__seq"), last=Max("entries__seq")
    ).filter(
        ~Q(count=F("head") - F("at"))
        | Q(first__isnull=False) & ~Q(first=F("at") + 1)
        | Q(last__isnull=False) & ~Q(last=F("head"))
    )
    for row in rows.order_by("pk").iterator(chunk_size=500):
        yield (
            f"conversation #{row.pk}: {row.count} own entries, from {row.first} to {row.last}, "
            f"where {row.at + 1} to {row.head} are expected"
        )

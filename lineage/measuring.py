"""Counts for the benchmark command. Reads only."""

from django.db.models import Count

from lineage.models import Note, Root, Task, TaskStatus


def is_new_console() -> bool:
    """Whether nothing was ever kept here."""
    return not Root.objects.exists()


def count_waiting() -> int:
    """Tasks that wait."""
    return Task.objects.filter(status=TaskStatus.WAITING).count()


def told_by(callers: list[int]) -> dict[int, int]:
    """How many finishes each of these conversations was told and shows."""
    rows = Note.objects.filter(submission__conversation__in=callers, submission__seq__isnull=False)
    counted = rows.values_list("submission__conversation").annotate(count=Count("pk"))
    return dict(counted)

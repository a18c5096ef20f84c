"""Counts for the benchmark command. Reads only."""

from django.db.models import Max

from lineage.models import Note, Root, Task, TaskStatus


def is_new_console() -> bool:
    """Whether nothing was ever kept here."""
    return not Root.objects.exists()


def count_waiting() -> int:
    """Tasks that wait."""
    return Task.objects.filter(status=TaskStatus.WAITING).count()


def newest_note() -> int:
    """The number of the newest note; 0: there is none."""
    return Note.objects.aggregate(newest=Max("pk"))["newest"] or 0


def told_after(note: int) -> list[int]:
    """The conversations that the notes after this one were delivered to. Cheap to ask while there are none."""
    return list(Note.objects.filter(pk__gt=note).values_list("submission__conversation", flat=True))

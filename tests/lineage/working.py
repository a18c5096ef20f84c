"""Doing the workers' part inside a test: what is due, and what was woken, until nothing is left."""

from collections.abc import Iterator
from contextlib import contextmanager

from lineage.models import Wake
from lineage.tasks.definitions import Definition, replace_kind
from lineage.tasks.working import run_due, run_subject


def work() -> int:
    """Run all that is due or woken; answers how many tasks were claimed."""
    count = run_due()
    while subjects := list(Wake.objects.order_by("subject").values_list("subject", flat=True).distinct()):
        for subject in subjects:
            run_subject(subject)
        count += run_due()
    return count


@contextmanager
def kind_in_place(definition: Definition) -> Iterator[Definition]:
    """A kind that only this test has."""
    before = replace_kind(definition.kind, definition)
    try:
        yield definition
    finally:
        replace_kind(definition.kind, before)

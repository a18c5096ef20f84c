"""The one clock. Tests move it; everything that asks for the time asks here."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.utils import timezone

_moved = timedelta()


def now() -> datetime:
    """The present moment, in UTC, with a time zone."""
    return timezone.now() + _moved


@contextmanager
def moved(by: timedelta) -> Iterator[None]:
    """For tests: the clock stands `by` further on inside the block."""
    global _moved
    before, _moved = _moved, _moved + by
    try:
        yield
    finally:
        _moved = before

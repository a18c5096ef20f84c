"""Days and hours of the board: a day is the installation's own (TIME_ZONE), an hour is UTC's."""

from datetime import UTC, date, datetime, time, timedelta

from django.utils import timezone

from console.board.models import HOURS
from console.clock import now

HOUR_S = 3600


def today() -> date:
    return timezone.localdate(now())


def day_start(day: date) -> datetime:
    """The first moment of the day, where the installation is."""
    return timezone.make_aware(datetime.combine(day, time.min))


def this_hour() -> int:
    """Hours since 1970."""
    return int(now().timestamp()) // HOUR_S


def hour_start(hour: int) -> datetime:
    return datetime.fromtimestamp(hour * HOUR_S, UTC)


def first_shown() -> datetime:
    """Where the activity that is shown begins."""
    return hour_start(this_hour()) - timedelta(hours=HOURS - 1)


def shifted(activity: list[int], hour: int, *, to: int) -> list[int]:
    """The counts of the hours that end with `to`, from those that end with `hour`."""
    gone = min(HOURS, max(0, to - hour))
    return activity[gone:] + [0] * gone

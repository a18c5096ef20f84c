"""Signing in by name and password, slowly for those who guess (S3). One-time links are in `console.actions.people`."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth import authenticate
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F

from console.clock import now
from console.errors import DomainError, Invalid
from console.models import SigninFailure, User

WINDOW = timedelta(minutes=15)
# A person mistypes a few times; ten guesses in a quarter of an hour find no password of twelve characters.
PAIR_TRIES = 10
# Colleagues may share an address, and a guesser may go through names from one.
ADDRESS_TRIES = 40
# Many addresses may guess one name. High, since whoever reaches it shuts the owner out; a one-time link still opens.
NAME_TRIES = 100


@dataclass(frozen=True, kw_only=True)
class _Limit:
    key: str
    tries: int
    whom: str


def check_password(*, username: str, password: str, address: str) -> User:
    """The account of that name and password. Each try counts before it is checked, so that tries at the same time count too.

    Refusals: `signin_failed` with `left`, the tries left; `signin_throttled` with `wait`, in seconds.
    """
    limits = _limits(username, address)
    left = min(_count_try(limit) for limit in limits)
    user = authenticate(username=username, password=password)
    if not isinstance(user, User):
        raise DomainError("signin_failed", _failed(left), status=401, left=left)
    SigninFailure.objects.filter(key=limits[0].key).delete()
    return user


def change_password(*, user: User, password: str, new: str) -> None:
    """Set a password. An account that has one must give it; one that a link made has none yet.

    Refusal: `invalid`, whose sentence names every rule that the new one breaks.
    """
    if user.has_usable_password() and not user.check_password(password):
        raise Invalid("password", "The present password is another one. Sign in with a one-time link if it is lost.")
    try:
        validate_password(new, user)
    except ValidationError as error:
        raise Invalid("new", " ".join(error.messages)) from error
    user.set_password(new)
    user.save(update_fields=["password"])


def _limits(username: str, address: str) -> tuple[_Limit, ...]:
    name = username.lower()[:120]
    return (
        _Limit(key=f"pair:{address}:{name}", tries=PAIR_TRIES, whom="this name from here"),
        _Limit(key=f"address:{address}", tries=ADDRESS_TRIES, whom="this address"),
        _Limit(key=f"name:{name}", tries=NAME_TRIES, whom="this name"),
    )


def _count_try(limit: _Limit) -> int:
    """Count one try and say how many are left; the first beyond the limit is refused and counts no more."""
    moment = now()
    with transaction.atomic():
        SigninFailure.objects.filter(key=limit.key, since__lte=moment - WINDOW).delete()
        row, _ = SigninFailure.objects.get_or_create(key=limit.key, defaults={"count": 0, "since": moment})
        counted = SigninFailure.objects.filter(pk=row.pk, count__lt=limit.tries).update(count=F("count") + 1)
        row.refresh_from_db()
    if not counted:
        wait = int((row.since + WINDOW - moment).total_seconds()) + 1
        raise DomainError(
            "signin_throttled",
            f"Too many tries for {limit.whom}. Wait {_minutes(wait)}, or use a one-time link: manage.py signin NAME.",
            status=429,
            wait=wait,
        )
    return limit.tries - row.count


def _failed(left: int) -> str:
    if left == 0:
        return (
            f"That name and password do not match. The next try is possible in {_minutes(int(WINDOW.total_seconds()))}."
        )
    tries = "one more try" if left == 1 else f"{left} more tries"
    return f"That name and password do not match. After {tries} you wait {_minutes(int(WINDOW.total_seconds()))}."


def _minutes(seconds: int) -> str:
    minutes = -(-seconds // 60)
    return "a minute" if minutes == 1 else f"{minutes} minutes"

"""Accounts of people and their one-time sign-in links (S1)."""

from datetime import timedelta

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q, QuerySet

from console.clock import now
from console.errors import DomainError, Invalid, NotFound
from console.events import AccessChanged, publish_on_commit
from console.json_text import one_line
from console.models import NAME_LENGTH, Actor, ActorKind, SigninLink, User
from console.secrets import hashed, new_secret

LINK_LIFE = timedelta(hours=24)
FIRST_OPERATOR = "operator"  # the account of the link that `up` prints


def make_user(*, username: str, superuser: bool = False) -> User:
    """An account without a password and its actor; a link signs it in first. Refusal: `invalid` for a taken or unusable name."""
    if len(username) > NAME_LENGTH:
        raise Invalid("username", f"A name has at most {NAME_LENGTH} characters; this one has {len(username)}.")
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError as error:
        raise Invalid("username", "A name has letters, digits and @ . + - _ only.") from error
    with transaction.atomic():
        if User.objects.filter(username__iexact=username).exists():
            raise Invalid("username", f"There is an account {username} already.")
        user = User(username=username, is_staff=superuser, is_superuser=superuser)
        user.set_unusable_password()
        user.save()
        Actor.objects.create(kind=ActorKind.PERSON, name=username, user=user, created=now())
    return user


def make_signin_link(*, username: str, create: bool = False) -> str:
    """The secret of a new one-time link for that account; `/signin/<secret>/` is its page. Older unspent links stay good."""
    user = User.objects.filter(username__iexact=username).first()
    if user is None and create:
        user = make_user(username=username, superuser=not User.objects.filter(is_superuser=True).exists())
    if user is None:
        raise NotFound("account", username)
    secret, moment = new_secret(), now()
    SigninLink.objects.create(user=user, secret_hash=hashed(secret), created=moment, expires=moment + LINK_LIFE)
    return secret


def first_signin_link() -> str | None:
    """A link for the first operator, or none once anyone has signed in. `up` prints it at every start (S1)."""
    if User.objects.filter(last_login__isnull=False).exists():
        return None
    first = User.objects.filter(is_superuser=True).order_by("pk").first()
    return make_signin_link(username=first.username if first else FIRST_OPERATOR, create=True)


def user_of_link(*, secret: str) -> User:
    """Whom an unspent, unexpired link signs in; spends nothing. Refusal: `link_spent`, the same for every bad link."""
    link = _live_links().filter(secret_hash=hashed(secret)).select_related("user").first()
    if link is None:
        raise _refused()
    return link.user


def spend_signin_link(*, secret: str) -> User:
    """Spend the link, once: of two that come together one is refused."""
    with transaction.atomic():
        link = _live_links().filter(secret_hash=hashed(secret)).select_for_update().first()
        if link is None:
            raise _refused()
        link.spent = now()
        link.save(update_fields=["spent"])
        return link.user


def close_account(*, user: User) -> None:
    """It may not sign in any more, and its open pages lose access (S2). What it wrote stays; closing again changes nothing."""
    with transaction.atomic():
        actor = Actor.objects.select_for_update(no_key=True).get(user=user)
        if actor.closed is None:
            actor.closed = now()
            actor.save(update_fields=["closed"])
        User.objects.filter(pk=user.pk).update(is_active=False)
        publish_on_commit("access", AccessChanged(actor=actor.pk))


def open_account(*, user: User) -> None:
    """It may sign in again."""
    with transaction.atomic():
        Actor.objects.filter(user=user).update(closed=None)
        User.objects.filter(pk=user.pk).update(is_active=True)


def rename_actor(*, actor: int, name: str) -> None:
    """What it is called from now on, also on what it wrote before (R6). Refusal: `invalid`."""
    flat = one_line(name, NAME_LENGTH + 1)
    if not 1 <= len(flat) <= NAME_LENGTH:
        raise Invalid("name", f"A name has 1 to {NAME_LENGTH} characters.", limit=NAME_LENGTH, actual=len(flat))
    Actor.objects.filter(pk=actor).update(name=flat)


def _live_links() -> QuerySet[SigninLink]:
    return SigninLink.objects.filter(Q(spent__isnull=True), expires__gt=now(), user__is_active=True)


def _refused() -> DomainError:
    return DomainError(
        "link_spent",
        "This link was used already, is older than 24 hours, or never existed. Make a new one: manage.py signin NAME.",
        status=404,
    )

"""Bearer tokens: made, shown once, revoked (S2)."""

from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction

from console.access import Permission, Who
from console.clock import now
from console.errors import Invalid, NotFound
from console.events import AccessChanged, publish_on_commit
from console.json_text import storable
from console.models import NAME_LENGTH, Actor, ActorKind, Role, Token
from console.secrets import hashed, new_secret
from lineage.access import root_for
from lineage.actions.roots import create_session, lock_root
from lineage.models import Conversation, Root

LONGEST_DAYS = 3650  # ten years: a typing error is likelier than a plan


@dataclass(frozen=True, kw_only=True)
class MadeToken:
    """`secret` is the bearer token itself: kept nowhere, so this is the only time that it can be shown."""

    secret: str
    token: Token


def make_token(
    *,
    who: Who | None,
    name: str,
    root: int,
    conversation: int | None = None,
    role: Role = Role.AGENT,
    main: bool = False,
    days: int | None = None,
) -> MadeToken:
    """A token of one root. Without `conversation` a session named after it is made; `main` makes it the root's main agent.

    `who` is none for the administrator's command. Refusals: `not_found`, `forbidden`, `invalid`.
    """
    name = checked_name(name)
    if role == Role.OWNER:
        raise Invalid("role", "A token is viewer, agent or operator; owners are people.")
    if main and role != Role.AGENT:
        raise Invalid("main", "Only a token with the role agent can be the root's main agent (L26).")
    if days is not None and not 1 <= days <= LONGEST_DAYS:
        raise Invalid("days", f"A token lives 1 to {LONGEST_DAYS} days, or without an end when days is left out.")
    if who is not None:
        root_for(who, root, Permission.MANAGE)
    moment, secret = now(), new_secret()
    with transaction.atomic():
        if not Root.objects.filter(pk=root).exists():
            raise NotFound("root", f"#{root}")
        row = lock_root(root)
        if conversation is None:
            place = create_session(root=row, title=name)
        else:
            found = Conversation.objects.filter(pk=conversation, root=row).first()
            if found is None:
                raise Invalid("conversation", f"#{conversation} is not in the tree of root #{root}.")
            place = found
        kind = ActorKind.AGENT if role == Role.AGENT else ActorKind.CLIENT
        actor = Actor.objects.create(kind=kind, name=name, created=moment)
        token = Token.objects.create(
            actor=actor,
            root=row,
            conversation=place,
            role=role,
            secret_hash=hashed(secret),
            created_by_id=who.actor if who else None,
            created=moment,
            expires=moment + timedelta(days=days) if days else None,
        )
        if main:
            row.main = actor
            row.save(update_fields=["main"])
    return MadeToken(secret=secret, token=token)


def revoke_token(*, who: Who, token: int) -> Token:
    """End a token. Its sockets lose access at once, or within 20 s without Valkey (S2). Revoking again changes nothing."""
    row = Token.objects.filter(pk=token).first()
    root_for(who, row.root_id if row else 0, Permission.MANAGE)
    with transaction.atomic():
        row = Token.objects.select_for_update().get(pk=token)
        if row.revoked is None:
            row.revoked = now()
            row.save(update_fields=["revoked"])
            publish_on_commit("access", AccessChanged(actor=row.actor_id))
    return row


def checked_name(name: str) -> str:
    """A name on one line, or a refusal."""
    flat = " ".join(storable(name).split())
    if not 1 <= len(flat) <= NAME_LENGTH:
        raise Invalid(
            "name",
            f"A name has 1 to {NAME_LENGTH} characters; this one has {len(flat)}.",
            limit=NAME_LENGTH,
            actual=len(flat),
        )
    return flat

"""Who asks, and what they may do in a root (R8, S2). The apps' own `access.py` hand out rows by these answers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from django.db import connection
from django.db.models import Q

from console.clock import now
from console.errors import DomainError, Forbidden, NotFound
from console.models import ActorKind, Membership, Role, Token, User


class Permission(Enum):
    READ = auto()
    WRITE = auto()  # entries, inputs, notes, documents, branches
    DECIDE = auto()  # approvals, stop, memory proposals
    MANAGE = auto()  # members, tokens, the main agent, policies


PERMISSIONS: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: frozenset({Permission.READ}),
    Role.AGENT: frozenset({Permission.READ, Permission.WRITE}),
    Role.OPERATOR: frozenset({Permission.READ, Permission.WRITE, Permission.DECIDE}),
    Role.OWNER: frozenset(Permission),
}

_MISSING = {
    Permission.WRITE: "You may read here, but not write. Ask an owner of the root for the role operator.",
    Permission.DECIDE: "Your role may not decide here. Ask an operator or owner of the root.",
    Permission.MANAGE: "Only an owner of the root may do this.",
}

_LIVE_TOKENS = """
SELECT true, token.id, token.role FROM console_token token JOIN console_actor actor ON actor.id = token.actor_id
WHERE token.id = ANY(%s) AND token.root_id = %s AND token.revoked IS NULL AND actor.closed IS NULL
    AND (token.expires IS NULL OR token.expires > %s)
"""
_LIVE_SUPERUSERS = "SELECT false, id, 'owner' FROM console_actor WHERE id = ANY(%s) AND closed IS NULL"
_MEMBERS = """
SELECT false, actor.id, membership.role FROM console_membership membership
JOIN console_actor actor ON actor.id = membership.actor_id
WHERE actor.id = ANY(%s) AND membership.root_id = %s AND actor.closed IS NULL
"""


@dataclass(frozen=True, kw_only=True)
class Who:
    """One who asks: a signed-in person, or a token. `root` and `conversation` are the token's only ones."""

    actor: int
    name: str
    kind: ActorKind
    superuser: bool = False
    token: int | None = None
    root: int | None = None
    conversation: int | None = None
    role: Role | None = None
    inside: bool = False  # an agent that the console itself runs: no token, but a root, a conversation and a role

    @property
    def is_agent(self) -> bool:
        """An actor is an agent exactly when its token has the role agent (D8)."""
        return self.kind == ActorKind.AGENT

    def as_author(self) -> dict[str, object]:
        """The `author` of an entry or a batch in JSON."""
        return {"id": self.actor, "name": self.name, "kind": str(self.kind)}


def who_is_user(user: User) -> Who:
    """The person behind an account. Its actor is made by `console.actions.make_user`."""
    actor = user.actor
    return Who(actor=actor.pk, name=actor.name, kind=ActorKind.PERSON, superuser=user.is_superuser)


def who_has_token(secret_hash: str) -> Who | None:
    """The agent or client of a live token: neither revoked, nor expired, nor closed."""
    token = (
        Token.objects.select_related("actor")
        .filter(Q(expires__isnull=True) | Q(expires__gt=now()))
        .filter(secret_hash=secret_hash, revoked__isnull=True, actor__closed__isnull=True)
        .first()
    )
    if token is None:
        return None
    return Who(
        actor=token.actor_id,
        name=token.actor.name,
        kind=ActorKind(token.actor.kind),
        token=token.pk,
        root=token.root_id,
        conversation=token.conversation_id,
        role=Role(token.role),
    )


def role_in(who: Who, root: int) -> Role | None:
    """The role in that root, or none. Read afresh each time: a revocation counts at once (S2)."""
    return roles_in([who], root)[0]


def roles_in(whos: Sequence[Who], root: int) -> list[Role | None]:
    """The role of each in that root, in one query. Plain SQL: every edit, call and subscription asks."""
    tokens = [who.token for who in whos if who.token is not None]
    superusers = [who.actor for who in whos if who.token is None and who.superuser]
    members = [who.actor for who in whos if who.token is None and not who.superuser and not who.inside]
    parts: list[str] = []
    values: list[Any] = []
    if tokens:
        parts.append(_LIVE_TOKENS)
        values += [tokens, root, now()]
    if superusers:
        parts.append(_LIVE_SUPERUSERS)
        values += [superusers]
    if members:
        parts.append(_MEMBERS)
        values += [members, root]
    found: dict[tuple[bool, int], str] = {}
    if parts:
        with connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(parts), values)
            found = {(bool(is_token), key): role for is_token, key, role in cursor.fetchall()}
    return [_role_found(who, root, found) for who in whos]


def _role_found(who: Who, root: int, found: Mapping[tuple[bool, int], str]) -> Role | None:
    if who.inside:
        return who.role if who.root == root else None
    role = found.get((who.token is not None, who.token or who.actor))
    return None if role is None else Role(role)


def may(who: Who, root: int, permission: Permission) -> bool:
    """Whether `who` may do that in the root."""
    role = role_in(who, root)
    return role is not None and permission in PERMISSIONS[role]


def roots_where(who: Who, permission: Permission, roots: Collection[int]) -> set[int]:
    """Those of the roots in which a person may do that, in one query."""
    if who.superuser:
        return set(roots)
    roles = [role for role, allowed in PERMISSIONS.items() if permission in allowed]
    found = Membership.objects.filter(actor=who.actor, actor__closed__isnull=True, root__in=roots, role__in=roles)
    return set(found.values_list("root", flat=True))


def require(who: Who, root: int, permission: Permission, *, what: str, name: object) -> None:
    """Refuse as `not_found` what `who` may not even read, as `forbidden` what it may read but not do."""
    refused = refusal(role_in(who, root), permission, what=what, name=name)
    if refused is not None:
        raise refused


def refusal(role: Role | None, permission: Permission, *, what: str, name: object) -> DomainError | None:
    """Why somebody with that role may not, or none when it may."""
    if role is None:
        return NotFound(what, name)
    if permission not in PERMISSIONS[role]:
        return Forbidden(_MISSING[permission], role=str(role))
    return None

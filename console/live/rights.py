"""What sockets may see, asked again for many at once (S2): one query each for accounts, tokens, memberships, sessions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.contrib.sessions.models import Session as SessionRow
from django.db.models import Q

from console.access import Who
from console.clock import now
from console.live.logs import Sees
from console.live.refusals import CLOSED, SIGNED_OUT
from console.live.signing_in import Session
from console.models import Actor, Membership, Token


@dataclass(frozen=True, kw_only=True)
class Asker:
    who: Who
    session: Session | None


@dataclass(frozen=True, kw_only=True)
class Standing:
    """`gone` is a close code, or none while the socket may stay; `sees` the roots that it may read, none for all."""

    who: Who
    gone: int | None = None
    sees: Sees = frozenset()

    def may_see(self, root: int) -> bool:
        return self.sees is None or root in self.sees


def read_standings(askers: Sequence[Asker]) -> list[Standing]:
    """The standing of each, as of now."""
    actors = {row.pk: row for row in Actor.objects.select_related("user").filter(pk__in={a.who.actor for a in askers})}
    tokens = dict(_live_tokens({a.who.token for a in askers if a.who.token is not None}))
    sessions = _live_sessions({a.session.key for a in askers if a.session is not None})
    roots: dict[int, set[int]] = {}
    persons = {a.who.actor for a in askers if a.who.token is None}
    for actor, root in Membership.objects.filter(actor__in=persons).values_list("actor_id", "root_id"):
        roots.setdefault(actor, set()).add(root)
    return [_standing(asker, actors.get(asker.who.actor), tokens, sessions, roots) for asker in askers]


def visible(who: Who) -> Sees:
    """The roots whose board rows `who` may see now."""
    return read_standings([Asker(who=who, session=None)])[0].sees


def _standing(
    asker: Asker, actor: Actor | None, tokens: dict[int, int], sessions: set[str], roots: dict[int, set[int]]
) -> Standing:
    who = asker.who
    if actor is None or actor.closed is not None:
        return Standing(who=who, gone=CLOSED)
    if who.token is not None:
        root = tokens.get(who.token)
        return Standing(who=who, gone=SIGNED_OUT) if root is None else Standing(who=who, sees=frozenset({root}))
    user = actor.user
    if user is None or not user.is_active:
        return Standing(who=who, gone=CLOSED)
    session = asker.session
    if session is not None and (session.key not in sessions or session.hash != user.get_session_auth_hash()):
        return Standing(who=who, gone=SIGNED_OUT)
    who = replace(who, superuser=user.is_superuser)
    return Standing(who=who, sees=None if user.is_superuser else frozenset(roots.get(who.actor, ())))


def _live_tokens(tokens: set[int]) -> Sequence[tuple[int, int]]:
    live = Token.objects.filter(Q(expires__isnull=True) | Q(expires__gt=now()), pk__in=tokens, revoked__isnull=True)
    return list(live.values_list("pk", "root_id"))


def _live_sessions(keys: set[str]) -> set[str]:
    live = SessionRow.objects.filter(session_key__in=keys, expire_date__gt=now())
    return set(live.values_list("session_key", flat=True))

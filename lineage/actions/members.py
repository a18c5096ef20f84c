"""Who may see and do what in a root (S2)."""

from django.db import transaction

from console.access import Permission, Who
from console.clock import now
from console.errors import Conflict, Invalid, NotFound
from console.events import AccessChanged, publish_on_commit
from console.models import Actor, ActorKind, Membership, Role
from lineage.access import root_for
from lineage.actions.roots import lock_root


def set_member(*, who: Who | None, root: int, actor: int, role: Role | None) -> Membership | None:
    """Give a person a role in a root, or take it away (`role` none). The last owner stays.

    `who` is none for the administrator's commands.
    """
    if who is not None:
        root_for(who, root, Permission.MANAGE)
    if role == Role.AGENT:
        raise Invalid("role", "A person is viewer, operator or owner; agents join with a token.")
    with transaction.atomic():
        lock_root(root)
        if not Actor.objects.filter(pk=actor, kind=ActorKind.PERSON, closed__isnull=True).exists():
            raise NotFound("person", actor)
        _keep_an_owner(root, actor, role)
        publish_on_commit("access", AccessChanged(actor=actor))
        if role is None:
            Membership.objects.filter(root_id=root, actor_id=actor).delete()
            return None
        member, _ = Membership.objects.update_or_create(
            root_id=root,
            actor_id=actor,
            defaults={"role": role},
            create_defaults={"role": role, "created": now()},
        )
    return member


def _keep_an_owner(root: int, actor: int, role: Role | None) -> None:
    owners = Membership.objects.filter(root_id=root, role=Role.OWNER)
    if role != Role.OWNER and owners.filter(actor_id=actor).exists() and owners.count() == 1:
        raise Conflict("last_owner", f"#{root} would be left without an owner. Make someone else owner first.")

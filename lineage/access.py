"""The only door to conversations and roots for one who asks (R8). "Absent" and "not yours" look the same (R7)."""

from django.db.models import QuerySet

from console.access import Permission, Who, require, role_in
from console.errors import NotFound
from lineage.models import Approval, Conversation, Root


def visible_roots(who: Who) -> QuerySet[Root]:
    """The roots that `who` may read."""
    if who.token is not None:
        return Root.objects.filter(pk=who.root) if who.root and role_in(who, who.root) else Root.objects.none()
    if who.inside:
        return Root.objects.filter(pk=who.root)
    if who.superuser:
        return Root.objects.all()
    return Root.objects.filter(memberships__actor_id=who.actor)


def conversation_for(who: Who, conversation: int, permission: Permission = Permission.READ) -> Conversation:
    """The conversation, unlocked; writers lock it again inside their transaction."""
    row = Conversation.objects.filter(pk=conversation).first() if 0 < conversation < 2**63 else None
    if row is None:
        raise NotFound("conversation", f"#{conversation}")
    require(who, row.root_id, permission, what="conversation", name=f"#{conversation}")
    return row


def root_for(who: Who, root: int, permission: Permission = Permission.READ) -> Root:
    """The root, with its conversation loaded."""
    row = Root.objects.select_related("conversation").filter(pk=root).first() if 0 < root < 2**63 else None
    if row is None:
        raise NotFound("root", f"#{root}")
    require(who, row.pk, permission, what="root", name=f"#{root}")
    return row


def approval_for(who: Who, approval: int, permission: Permission = Permission.READ) -> Approval:
    """The approval, unlocked, with its task."""
    row = Approval.objects.select_related("task").filter(pk=approval).first() if 0 < approval < 2**63 else None
    if row is None:
        raise NotFound("approval", approval)
    require(who, row.root_id, permission, what="approval", name=approval)
    return row

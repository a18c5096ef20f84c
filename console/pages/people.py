"""Who may do what in a root: its people and their roles (S2)."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from console.access import Permission, Who, may
from console.errors import DomainError, Invalid, NotFound
from console.models import Role
from console.pages.view import page
from lineage.access import root_for
from lineage.actions.members import set_member
from lineage.models import Root
from lineage.trees import members_of, person_named

ROLES = (
    (Role.VIEWER, "reads"),
    (Role.OPERATOR, "writes and decides"),
    (Role.OWNER, "manages people and tokens too"),
)


@require_GET
@page
def people(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    return _people(request, who, root_for(who, number))


@require_POST
@page
def people_changed(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """Give somebody a role, by name, or take it away with the role `none`."""
    root = root_for(who, number, Permission.MANAGE)
    name, asked = request.POST.get("name", "").strip(), request.POST.get("role", "")
    try:
        if asked not in {*Role.values, "none"}:
            raise Invalid("role", "Choose a role: viewer, operator or owner.")
        person = person_named(name)
        if person is None:
            raise NotFound("account", name[:80] or "without a name")
        set_member(who=who, root=number, actor=person.pk, role=None if asked == "none" else Role(asked))
    except DomainError as refusal:
        return _people(request, who, root, refusal=refusal, asked=name)
    return redirect("people", number)


def _people(request: HttpRequest, who: Who, root: Root, **more: Any) -> HttpResponse:
    context = {
        "root": root,
        "members": members_of(root),
        "roles": ROLES,
        "may_manage": may(who, root.pk, Permission.MANAGE),
        **more,
    }
    refusal = more.get("refusal")
    return render(request, "console/people.html", context, status=refusal.status if refusal else 200)

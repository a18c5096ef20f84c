"""The administration of accounts, actors, tokens and what the console keeps for itself."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest

from console.access import who_is_user
from console.actions.people import close_account, make_signin_link, open_account, rename_actor
from console.errors import DomainError
from console.models import Actor, Membership, SigninFailure, Token, User
from console.reading_admin import ReadOnly, linked, register_rest
from lineage.actions.tokens import revoke_token

admin.site.unregister(Group)  # roles are per root (S2); groups would promise what nothing reads


@admin.register(User)
class UserAdmin(ReadOnly):
    """Accounts begin with a one-time link: `manage.py signin NAME --create`, or the action here for one that exists."""

    list_display = ("username", "actor", "is_active", "is_superuser", "last_login", "date_joined")
    list_filter = ("is_active", "is_superuser", "last_login")
    list_select_related = ("actor",)
    search_fields = ("username", "first_name", "last_name", "email")
    exclude = ("password",)
    actions = (
        "make_link",
        "close",
        "open",
    )

    @admin.action(description="Make a one-time sign-in link")
    def make_link(self, request: HttpRequest, users: QuerySet[User]) -> None:
        for user in users:
            link = request.build_absolute_uri(f"/signin/{make_signin_link(username=user.username)}/")
            messages.success(request, f"{user.username}, once and for 24 hours: {link}")

    @admin.action(description="Close: may not sign in any more")
    def close(self, request: HttpRequest, users: QuerySet[User]) -> None:
        for user in users:
            if user.pk == request.user.pk:
                messages.error(request, "You cannot close your own account: you would be locked out.")
                continue
            close_account(user=user)
            messages.success(request, f"{user.username} is closed. What it wrote stays, under its name.")

    @admin.action(description="Open again")
    def open(self, request: HttpRequest, users: QuerySet[User]) -> None:
        for user in users:
            open_account(user=user)
            messages.success(request, f"{user.username} may sign in again.")


@admin.register(Actor)
class ActorAdmin(ReadOnly):
    """Actors are never deleted, only closed and renamed (R6)."""

    list_display = ("name", "kind", "user", "created", "closed")
    list_filter = ("kind", "closed", "created")
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    fields = ("name", "kind", "user", "created", "closed")
    readonly_fields = ("kind", "user", "created", "closed")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def save_model(self, request: HttpRequest, obj: Actor, form: Any, change: bool) -> None:
        rename_actor(actor=obj.pk, name=obj.name)


@admin.register(Membership)
class MembershipAdmin(ReadOnly):
    """Roles are given on the page of a root's people."""

    list_display = ("actor_link", "role", "root_link", "created")
    list_filter = ("role", "created")
    list_select_related = ("actor", "root__conversation")
    search_fields = ("actor__name", "root__conversation__title")
    actor_link = linked("actor")
    root_link = linked("root")


@admin.register(Token)
class TokenAdmin(ReadOnly):
    """Bearer tokens, without their secrets. Made on the account page or with `manage.py token`."""

    list_display = ("actor_link", "role", "root_link", "conversation_link", "created", "used", "expires", "revoked")
    list_filter = ("role", "revoked", "expires", "created")
    list_select_related = ("actor", "root__conversation", "conversation")
    search_fields = ("actor__name", "root__conversation__title")
    exclude = ("secret_hash",)
    actions = ("revoke",)
    actor_link = linked("actor")
    root_link = linked("root")
    conversation_link = linked("conversation")

    @admin.action(description="Revoke")
    def revoke(self, request: HttpRequest, tokens: QuerySet[Token]) -> None:
        assert isinstance(request.user, User)
        for token in tokens:
            try:
                revoke_token(who=who_is_user(request.user), token=token.pk)
            except DomainError as refusal:
                messages.error(request, refusal.message)
            else:
                messages.success(request, f"The token of {token.actor} is revoked.")


@admin.register(SigninFailure)
class SigninFailureAdmin(ReadOnly):
    """Failed sign-ins of the last quarter of an hour; deleting one forgives them."""

    list_display = ("key", "count", "since")
    search_fields = ("key",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True


register_rest("console")

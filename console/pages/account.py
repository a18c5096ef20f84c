"""The reader's own account: password, roots, and the tokens of roots that they own (S1, S2)."""

from typing import Any

from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from console.access import Who
from console.actions.signins import change_password
from console.clock import now
from console.errors import DomainError, Invalid
from console.models import Role, User
from console.pages.view import page
from lineage.actions.tokens import MadeToken, make_token, revoke_token
from lineage.trees import TOKENS_SHOWN, roots_of, tokens_of


@require_GET
@page
def account(request: HttpRequest, who: Who) -> HttpResponse:
    return _account(request, who)


@sensitive_post_parameters("password", "new")
@require_POST
@page
def account_password(request: HttpRequest, who: Who) -> HttpResponse:
    """Set the password; this session stays signed in, others of the account end."""
    assert isinstance(request.user, User)  # the page decorator let it in
    try:
        change_password(user=request.user, password=request.POST.get("password", ""), new=request.POST.get("new", ""))
    except DomainError as refusal:
        return _account(request, who, password_refusal=refusal)
    update_session_auth_hash(request, request.user)
    return _account(request, who, password_changed=True)


@require_POST
@page
def account_token(request: HttpRequest, who: Who) -> HttpResponse:
    """Make a token. The answer shows its secret, this once."""
    try:
        made = _make(request, who)
    except DomainError as refusal:
        return _account(request, who, token_refusal=refusal, asked=request.POST)
    return _account(request, who, made=made)


@require_POST
@page
def account_token_revoked(request: HttpRequest, who: Who, token: int) -> HttpResponse:
    revoke_token(who=who, token=token)
    return redirect("account")


def _make(request: HttpRequest, who: Who) -> MadeToken:
    root, days, role = (request.POST.get(name, "").strip() for name in ("root", "days", "role"))
    if not root.isdecimal() or len(root) > 18:
        raise Invalid("root", "Choose the root that the token is for.")
    if days and not (days.isdecimal() and len(days) < 6):
        raise Invalid("days", "Days is a whole number, or empty for a token without an end.")
    if role not in Role.values:
        raise Invalid("role", "Choose a role: agent, operator or viewer.")
    return make_token(
        who=who,
        name=request.POST.get("name", ""),
        root=int(root),
        role=Role(role),
        days=int(days) if days else None,
        main=request.POST.get("main") == "on",
    )


def _account(request: HttpRequest, who: Who, **more: Any) -> HttpResponse:
    roots, tokens = roots_of(who), tokens_of(who)
    assert isinstance(request.user, User)
    context = {
        "who": who,
        "roots": roots,
        "owned": [root for root, role in roots if role == Role.OWNER],
        "tokens": tokens,
        "tokens_shown": TOKENS_SHOWN,
        "has_password": request.user.has_usable_password(),
        "now": now(),
        **more,
    }
    refusal = more.get("password_refusal") or more.get("token_refusal")
    return render(request, "console/account.html", context, status=refusal.status if refusal else 200)

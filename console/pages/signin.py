"""Signing in and out (S1, S3)."""

from typing import Any

from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from console.actions.people import spend_signin_link, user_of_link
from console.actions.signins import check_password
from console.errors import DomainError
from console.models import User

BACKEND = "django.contrib.auth.backends.ModelBackend"


@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Name and password. Who is signed in already goes on."""
    if request.method == "GET":
        return redirect(_next(request)) if request.user.is_authenticated else _form(request)
    username = request.POST.get("username", "")
    try:
        user = check_password(
            username=username,
            password=request.POST.get("password", ""),
            address=request.META.get("REMOTE_ADDR", ""),
        )
    except DomainError as refusal:
        return _form(request, refusal=refusal, username=username)
    return _enter(request, user)


@require_http_methods(["GET", "HEAD", "POST"])
def one_time_link(request: HttpRequest, secret: str) -> HttpResponse:
    """GET says whom the link signs in and spends nothing (mail and chat programs follow links); POST spends it."""
    try:
        if request.method == "POST":
            return _enter(request, spend_signin_link(secret=secret))
        user = user_of_link(secret=secret)
    except DomainError as refusal:
        return render(request, "console/link_spent.html", {"refusal": refusal}, status=refusal.status)
    return render(request, "console/link.html", {"name": user.username})


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("signin")


def _form(request: HttpRequest, refusal: DomainError | None = None, username: str = "") -> HttpResponse:
    context: dict[str, Any] = {"refusal": refusal, "username": username, "next": request.GET.get("next", "")}
    return render(request, "console/signin.html", context, status=refusal.status if refusal else 200)


def _enter(request: HttpRequest, user: User) -> HttpResponse:
    login(request, user, backend=BACKEND)
    return HttpResponseRedirect(_next(request))


def _next(request: HttpRequest) -> str:
    """Where the reader wanted to go, if that lies here."""
    wanted = request.POST.get("next") or request.GET.get("next") or "/"
    here = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if here else "/"

"""How a page is entered: who asks, and what a refusal looks like. Views below it are thin: authorise, ask, render."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers

from console.access import Who, who_is_user
from console.errors import DomainError
from console.models import User


def page[**P](
    view: Callable[Concatenate[HttpRequest, Who, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """A page for those who are signed in. Others go to sign in and come back; a refusal becomes a page of its own."""

    def entered(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not isinstance(request.user, User):
            return _to_signin(request)
        try:
            response = view(request, who_is_user(request.user), *args, **kwargs)
        except DomainError as refusal:
            response = refused(request, refusal)
        if not response.has_header("Cache-Control"):
            add_never_cache_headers(response)  # what is live is never shown again from a cache
        return response

    update_wrapper(entered, view)
    return entered


def refused(request: HttpRequest, refusal: DomainError) -> HttpResponse:
    """The page, or for the page's own calls the JSON, of a refusal (R7)."""
    if "application/json" in request.headers.get("Accept", "") or request.headers.get("X-Part"):
        return JsonResponse({"error": refusal.as_json()}, status=refusal.status)
    return render(request, "console/refused.html", {"refusal": refusal}, status=refusal.status)


def _to_signin(request: HttpRequest) -> HttpResponse:
    if request.headers.get("X-Part") or "application/json" in request.headers.get("Accept", ""):
        message = "You are no longer signed in. Open the page again to sign in."
        return refused(request, DomainError("signed_out", message, status=401))
    here = request.get_full_path()
    query = "" if here == "/" else "?" + urlencode({"next": here})
    return HttpResponseRedirect(reverse("signin") + query)

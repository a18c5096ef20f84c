"""The HTTP API at `/api/` (CONTRACT): who asks, how bodies are read, and the one shape of every refusal (R7).

The calls themselves are in the apps' `api.py`; each parses, calls one action or query, and renders (R1).
"""

import logging
from collections.abc import Awaitable, Callable
from functools import wraps
from http import HTTPStatus
from inspect import iscoroutinefunction
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path, re_path
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.parser import Parser
from ninja.renderers import BaseRenderer
from ninja.security import APIKeyCookie, HttpBearer
from psycopg_pool import PoolTimeout

from console.access import Who, who_has_token, who_is_user
from console.archive.api import router as archive
from console.crossing import busy
from console.errors import DomainError, TooLarge
from console.events import encode_json
from console.json_door import read_json
from console.json_text import dumped
from console.models import User
from console.search.api import router as search
from console.secrets import hashed
from documents.api import router as documents
from lineage.api import router as lineage
from lineage.api_approvals import router as approvals
from lineage.api_attachments import router as attachments
from lineage.api_transcripts import router as transcripts
from lineage.api_tree import router as tree

logger = logging.getLogger(__name__)

MAX_ERRORS = 20  # places of a wrong body that are told one by one; a wrong list of a thousand repeats itself


class BearerToken(HttpBearer):
    """`Authorization: Bearer <token>`."""

    def authenticate(self, request: HttpRequest, token: str) -> Who | None:
        return who_has_token(hashed(token))


class SessionCookie(APIKeyCookie):
    """The session of a signed-in browser, with `X-CSRFToken` on every writing call."""

    param_name = settings.SESSION_COOKIE_NAME

    def _get_key(self, request: HttpRequest) -> str | None:
        # A token that is offered counts alone, so that a bad one never falls back to a cookie.
        if "Authorization" in request.headers or self.param_name not in request.COOKIES:
            return None
        return super()._get_key(request)

    def authenticate(self, request: HttpRequest, key: str | None) -> Who | None:
        user = request.user if key else None
        if not isinstance(user, User) or not user.is_active or user.actor.closed is not None:
            return None
        return who_is_user(user)


class JsonParser(Parser):
    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        return read_json(request.body, dict[str, Any])


class JsonRenderer(BaseRenderer):
    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        return encode_json(data)


api = NinjaAPI(
    title="Lineage Console",
    version="1",
    description="Everything that a page of the console does. Refusals are `{error: {code, message, ...facts}}`;"
    " lists are `{items, next}`; a repeated `request_id` returns the first result.",
    urls_namespace="api",
    auth=[BearerToken(), SessionCookie()],
    parser=JsonParser(),
    renderer=JsonRenderer(),
)
for router in (lineage, tree, documents, attachments, approvals, transcripts, search, archive):
    api.add_router("", router)


def refused(error: DomainError) -> HttpResponse:
    """A refusal as an answer. Text that cannot be UTF-8 is escaped, in whatever fact it may be."""
    answer = HttpResponse(dumped({"error": error.as_json()}), status=error.status, content_type="application/json")
    if error.status == HTTPStatus.UNAUTHORIZED:
        answer["WWW-Authenticate"] = "Bearer"
    return answer


@api.exception_handler(DomainError)
def refuse_domain(request: HttpRequest, error: DomainError) -> HttpResponse:
    return refused(error)


@api.exception_handler(ValidationError)
def refuse_shape(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """A parameter or a body in another shape: the first place in the sentence, the first ones as `errors`."""
    places = [
        {"field": ".".join(str(part) for part in found["loc"]), "message": str(found["msg"])} for found in error.errors
    ]
    first = places[0]
    message = f"{first['field']}: {first['message']}."
    return refused(DomainError("invalid", message, field=first["field"], errors=places[:MAX_ERRORS]))


@api.exception_handler(HttpError)
def refuse_http(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, DomainError):  # what the parser said
        return refused(error.__cause__)
    return refused(_of_status(error.status_code))


@api.exception_handler(Http404)
def refuse_missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return refused(_of_status(404))


@api.exception_handler(RequestDataTooBig)
def refuse_size(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    actual = int(request.headers.get("Content-Length") or 0)
    message = f"The body has {actual} bytes; at most {limit} are taken. Send it in parts."
    return refused(TooLarge("body_too_large", message, limit=limit, actual=actual))


@api.exception_handler(OperationalError)
@api.exception_handler(InterfaceError)
def refuse_without_database(request: HttpRequest, error: Exception) -> HttpResponse:
    if isinstance(error.__cause__, PoolTimeout):
        return refused(busy())
    logger.warning("The database does not answer: %s", error)
    return refused(
        DomainError(
            "unavailable", "The database does not answer at the moment. Try again in a few seconds.", status=503
        )
    )


@api.exception_handler(Exception)
def refuse_fault(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.exception("%s %s failed", request.method, request.path, exc_info=error)
    got_request_exception.send(sender=None, request=request)
    return refused(DomainError("internal", "The console made an error. It is in its log with the time.", status=500))


def urls() -> list[URLPattern | URLResolver]:
    """The API's addresses, and the same shape for addresses and methods that it does not have."""
    patterns, app, namespace = api.urls
    for pattern in patterns:
        assert pattern.callback is not None
        pattern.callback = _in_shape(pattern.callback)
    return [path("api/", (patterns, app, namespace)), re_path(r"^api/", refuse_address, name="api-unknown")]


def refuse_address(request: HttpRequest) -> HttpResponse:
    return refused(_of_status(404))


def _in_shape(view: Callable[..., Any]) -> Callable[..., Any]:
    if iscoroutinefunction(view):

        @wraps(view)
        async def run_async(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            answer: Awaitable[HttpResponse] = view(request, *args, **kwargs)
            return _shaped(await answer)

        return run_async

    @wraps(view)
    def run(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _shaped(view(request, *args, **kwargs))

    return run


def _shaped(answer: HttpResponse) -> HttpResponse:
    """The framework's own answer to a wrong method is a line of text."""
    if answer.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
        return answer
    shaped = refused(_of_status(answer.status_code))
    shaped["Allow"] = answer["Allow"]
    return shaped


_SENTENCES = {
    400: ("bad_request", "The request was not understood. Send JSON in UTF-8 as the API's page describes it."),
    401: ("unauthenticated", "Sign in, or send a live token: Authorization: Bearer <token>."),
    403: ("csrf", "A writing call with the session cookie needs the header X-CSRFToken with the page's token."),
    404: ("not_found", "There is nothing at this address, or it is not yours to see."),
    405: ("method_not_allowed", "This address does not take that method; the header Allow names those it takes."),
    429: ("too_many_requests", "Too many requests. Wait a little and try again."),
}


def _of_status(status: int) -> DomainError:
    code, message = _SENTENCES.get(status, ("refused", HTTPStatus(status).phrase))
    return DomainError(code, message, status=status)

"""JSON answers over HTTP: one encoder, one shape of a list, one way to ask who asks."""

from collections.abc import Sequence
from typing import Any, cast

from django.http import HttpRequest, HttpResponse

from console.access import Who
from console.events import encode_json


def json_answer(value: Any, status: int = 200) -> HttpResponse:
    """The value as JSON; `msgspec.Raw` parts go out as they are (R10)."""
    return HttpResponse(encode_json(value), status=status, content_type="application/json")


def listed(items: Sequence[Any], next_cursor: str | None) -> HttpResponse:
    """`{"items": [...], "next": cursor|null}` (CONTRACT)."""
    return json_answer({"items": items, "next": next_cursor})


def who_of(request: HttpRequest) -> Who:
    """Who the call's authentication found; every call of the API has one."""
    return cast(Who, request.auth)  # type: ignore[attr-defined]

"""Request ids (R4): a repeat returns the first result, also with another body; only acceptances are remembered.

Callers hold the lock of the receiving row when they ask, so two copies of one request cannot both be first.
"""

import json
from typing import Any

from console.clock import now
from console.errors import Invalid
from console.models import REQUEST_ID_LENGTH, Request


def checked_request_id(request_id: str | None) -> str | None:
    """The id as given, or a refusal: at most 200 characters, no U+0000. A blank one counts as none."""
    if not request_id:
        return None
    if len(request_id) > REQUEST_ID_LENGTH:
        raise Invalid(
            "request_id",
            f"request_id has {len(request_id)} characters; at most {REQUEST_ID_LENGTH} are allowed.",
            limit=REQUEST_ID_LENGTH,
            actual=len(request_id),
        )
    if "\0" in request_id or any(0xD800 <= ord(c) <= 0xDFFF for c in request_id):
        raise Invalid("request_id", "request_id holds U+0000 or an unpaired surrogate. Send valid text.")
    return request_id


def remembered(*, receiver: str, actor: int | None, request_id: str | None) -> Any | None:
    """The first result under this id, or none."""
    if request_id is None:
        return None
    rows = Request.objects.filter(receiver=receiver, request_id=request_id)
    row = (rows.filter(actor=None) if actor is None else rows.filter(actor_id=actor)).first()
    return None if row is None else json.loads(row.result)


def remember(*, receiver: str, actor: int | None, request_id: str | None, result: Any) -> None:
    """Keep the result in the caller's transaction."""
    if request_id is not None:
        Request.objects.create(
            receiver=receiver, actor_id=actor, request_id=request_id, result=json.dumps(result), created=now()
        )

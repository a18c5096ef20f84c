"""Expected refusals (R7). One place each turns them into JSON, frames, MCP tool errors and lines on a terminal."""

from typing import Any


class DomainError(Exception):
    """A refusal that is part of the product: `code` names it, `status` is its HTTP status, `facts` what a caller can act on.

    Facts are plain JSON values. They stand beside `code` and `message` in every rendering, so they never use these names.
    """

    def __init__(self, code: str, message: str, *, status: int = 422, **facts: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.facts = facts

    def as_json(self) -> dict[str, Any]:
        """`{"code", "message", ...facts}`, the value of `error` in an answer or a frame (CONTRACT, HTTP)."""
        return {"code": self.code, "message": self.message, **self.facts}


class NotFound(DomainError):
    """Absent, or not yours: both look the same (R7)."""

    def __init__(self, what: str, name: object) -> None:
        super().__init__("not_found", f"There is no {what} {name}, or it is not yours to see.", status=404)


class Forbidden(DomainError):
    """You may see it, but not do this to it."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__("forbidden", message, status=403, **facts)


class Conflict(DomainError):
    """The thing is in a state in which this cannot be done."""

    def __init__(self, code: str, message: str, **facts: Any) -> None:
        super().__init__(code, message, status=409, **facts)


class Invalid(DomainError):
    """A value that cannot be used; `field` names it."""

    def __init__(self, field: str, message: str, *, code: str = "invalid", **facts: Any) -> None:
        super().__init__(code, message, status=422, field=field, **facts)


class TooLarge(DomainError):
    """A named limit was passed; `limit` and `actual` are in the unit that the message names."""

    def __init__(self, code: str, message: str, *, limit: int, actual: int) -> None:
        super().__init__(code, message, status=413, limit=limit, actual=actual)

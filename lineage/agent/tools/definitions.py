"""What a tool is: one definition for the model inside and for agents outside (A4)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from console.access import Who
from lineage.agent.failures import ToolFailed


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who calls, from which conversation. `request_id` comes from the task and the call, so that a rerun does nothing twice."""

    who: Who
    conversation: int
    root: int
    folder: str = ""
    request_id: str | None = None
    at: int = 0  # the entry that holds the call
    call: str = ""
    expected: str | None = None  # the hash of the file that was approved (A3)
    stopped: Callable[[], bool] = lambda: False


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a call gave back: `text` for the model, one `line` and `facts` for people. `waits_for` is a conversation whose answer
    is the result."""

    text: str
    line: str = ""
    error: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] | None = None  # the same as values, for agents outside
    waits_for: int | None = None


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool. `arguments` is a msgspec struct: its fields are the schema, and what does not fit is refused by name."""

    name: str
    description: str
    arguments: type[msgspec.Struct]
    run: Callable[[Caller, Any], Said]
    replay_safe: bool  # may be run again after a crash (A4)
    asks: bool = False  # waits for an approval (A3)
    in_folder: bool = False  # offered where the conversation has a working folder
    reads_only: bool = False

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, without references."""
        (found,), components = msgspec.json.schema_components([self.arguments])
        return _tidy(_inlined(found, components))

    def as_definition(self) -> dict[str, Any]:
        """As the Messages API wants it."""
        return {"name": self.name, "description": self.description, "input_schema": self.schema}

    def checked(self, given: Any) -> Any:
        """The arguments, or `ToolFailed` with what is wrong with them."""
        try:
            return msgspec.convert(_whole(given), self.arguments)
        except msgspec.ValidationError as error:
            raise ToolFailed(
                f"The arguments of {self.name} do not fit: {error}. Correct them and call it again."
            ) from None


def _whole(value: Any) -> Any:
    """8000.0 is a whole number: models write it so."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _inlined(schema: Any, components: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(item, components) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _inlined(components[reference.rpartition("/")[2]], components)
    return {key: _inlined(value, components) for key, value in schema.items()}


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the struct's title, which would only cost tokens."""
    return {key: value for key, value in schema.items() if key != "title"}

"""What kinds of task there are (L9). A definition is frozen; a row that no definition covers stays blocked, visible, never lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lineage.models import Conversation, Task
    from lineage.tasks.running import Run

Facts = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Where a task stands, and what it was given."""

    phase: str
    facts: Facts
    input: Facts


@dataclass(frozen=True, kw_only=True)
class Definition:
    """One kind of task.

    `phases` maps a phase's name to its function. It runs outside of transactions, may be run twice, and ends in one commit
    (`Run.commit`) in which its effect and the next checkpoint are written together. `batches` has functions for phases
    that can run many tasks in one commit (`commit_together`).

    `ended` is called in the transaction that ends a task, whatever its outcome, with its conversation locked. `abort` undoes
    what an aborted task began outside the database, and ends in a commit too; without one the row just ends.

    `oldest` is the oldest stored version that `migrate` brings up to `version`.
    """

    kind: str
    version: int
    first: str
    phases: Mapping[str, Callable[[Run], None]]
    foreground: bool  # counts for idleness (L8)
    batches: Mapping[str, Callable[[Sequence[Run]], None]] = field(default_factory=dict)
    ended: Callable[[Task, Conversation], None] | None = None
    abort: Callable[[Run], None] | None = None
    oldest: int | None = None
    migrate: Callable[[int, Checkpoint], Checkpoint] | None = None
    tries: int = 8  # claims of one phase that may end in no commit, the first one included
    pause_s: float = 1.0  # before the second try; doubled each time
    longest_pause_s: float = 60.0
    cannot_run: Callable[[Conversation], tuple[str, str] | None] | None = None  # (reason, in words), for generation

    @property
    def versions(self) -> tuple[int, int]:
        """The stored versions that can be run, from and to."""
        return (self.version if self.oldest is None else self.oldest, self.version)

    def pause_after(self, attempts: int) -> float:
        """Seconds of back-off after so many failed attempts."""
        return float(min(self.longest_pause_s, self.pause_s * 2.0 ** max(0, attempts - 1)))


_definitions: dict[str, Definition] = {}


def register_kind(definition: Definition) -> Definition:
    """Make a kind known to this process. A kind is registered once."""
    assert definition.first in definition.phases
    assert (definition.oldest is None) == (definition.migrate is None)
    if _definitions.setdefault(definition.kind, definition) is not definition:
        raise ValueError(f"The kind {definition.kind} is registered already.")
    return definition


def find_kind(kind: str) -> Definition | None:
    """The definition of a kind, or none."""
    return _definitions.get(kind)


def known_kinds() -> list[Definition]:
    """All definitions of this process."""
    return list(_definitions.values())


def replace_kind(kind: str, definition: Definition | None) -> Definition | None:
    """For tests: put another definition, or none, in a kind's place; answers what stood there."""
    before = _definitions.pop(kind, None)
    if definition is not None:
        _definitions[kind] = definition
    return before

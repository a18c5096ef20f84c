"""What documents ask of the conversations that they belong to, without importing them (DESIGN 3).

The lineage app registers itself when it is ready. All of it runs inside the caller's transaction, conversations before
documents (R5).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from console.access import Who


@dataclass(frozen=True, kw_only=True)
class Edited:
    """What an agent did to a document in one transaction: the entry `document.edited` of its own conversation (D8)."""

    conversation: int
    who: Who
    document: int
    title: str
    first: int  # revisions, both ends included; others' may lie between
    last: int
    batches: int


class Owners(Protocol):
    """The conversations, as documents need them. A *head* is the number of the newest entry."""

    def root_of(self, conversation: int) -> int | None:
        """The root of a conversation, or none when there is no such conversation."""

    def path_of(self, conversation: int) -> list[tuple[int, int]]:
        """What a fork inherits, oldest first: (conversation, up to this entry). Empty for every other (L3)."""

    def lock(self, conversations: Collection[int]) -> dict[int, int]:
        """Lock them in the order of their ids, for appending entries; their heads."""

    def share(self, conversation: int) -> int:
        """Keep its head from growing until the transaction ends, together with others who share it; the head."""

    def note_edited(self, edited: Sequence[Edited], heads: Mapping[int, int]) -> None:
        """Append one entry for each, to conversations that `lock` has locked with these heads."""

    def touch(self, conversation: int) -> None:
        """Tell the board keeper to look at it again (R9)."""


_registered: list[Owners] = []


def register_owners(owners: Owners) -> None:
    """Once, when the apps are ready."""
    _registered[:] = [owners]


def owners() -> Owners:
    """Whoever registered."""
    (registered,) = _registered
    return registered

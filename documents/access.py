"""The only door to documents for one who asks (R8). "Absent" and "not yours" look the same (R7).

Whoever may read a root may read every document of its tree. How a document looks from a fork is `documents.forks`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from console.access import Permission, Who, refusal, require, roles_in
from console.errors import DomainError, NotFound
from documents.models import Document
from documents.owners import owners

PLACES = 10_000  # documents whose place a process remembers, about 200 bytes each
LARGEST_ID = 2**63 - 1  # PostgreSQL's bigint: a larger number is nobody's, and would be an error


def document_for(who: Who, document: int, permission: Permission = Permission.READ) -> Document:
    """The document, unlocked. Refusals: `not_found` for what `who` may not read, `forbidden`."""
    row = found_document(document)
    require(who, row.root_id, permission, what="document", name=document)
    return row


def found_document(document: int) -> Document:
    """The row, whoever asks, or `not_found`."""
    row = Document.objects.filter(pk=document).first() if 0 < document <= LARGEST_ID else None
    if row is None:
        raise NotFound("document", document)
    return row


class Place(NamedTuple):
    """Where a document belongs: fixed when it is made."""

    document: int
    conversation: int
    root: int

    @property
    def is_shared(self) -> bool:
        """As `Document.is_shared` (D9)."""
        return self.conversation == self.root


@lru_cache(maxsize=PLACES)
def place_of(document: int) -> Place:
    """Where it belongs, remembered by the process. Refusal: `not_found`, which is not remembered."""
    row = found_document(document)
    return Place(document=row.pk, conversation=row.conversation_id, root=row.root_id)


def refusals(whos: Sequence[Who], place: Place, permission: Permission) -> list[DomainError | None]:
    """For each of them, why they may not do that to the document, or none; in one query."""
    roles = roles_in(whos, place.root)
    return [refusal(role, permission, what="document", name=place.document) for role in roles]


def root_of_conversation(who: Who, conversation: int, permission: Permission) -> int:
    """The root of a conversation whose documents `who` may read or write."""
    root = owners().root_of(conversation) if 0 < conversation <= LARGEST_ID else None
    if root is None:
        raise NotFound("conversation", f"#{conversation}")
    require(who, root, permission, what="conversation", name=f"#{conversation}")
    return root

"""The one statement that records a group: the hot path of a document, so it is SQL and a single round trip.

Half of a group's cost would be the object mapper's. The statement does nothing when the document has moved on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import NamedTuple

from django.db import connection

from console.access import Who
from documents.access import Place
from documents.models import Document


@dataclass(frozen=True, kw_only=True)
class NewRow:
    """A batch that was accepted; `edits` is its JSON."""

    who: Who
    revision: int
    request_id: str
    edits: bytes


class Written(NamedTuple):
    """What the document's row says after the group."""

    size: int
    title: str


# The update comes first: it locks the row, and finds none when somebody recorded since `before` was read. A head that was
# not locked is read here; only shared documents do so, which no fork reads as at an entry.
_RECORD = """
WITH document AS (
    UPDATE documents_document SET revision = %(last)s, size = size + %(added)s
    WHERE id = %(document)s AND revision = %(before)s
    RETURNING id, size, title
), batches AS (
    INSERT INTO documents_editbatch (document_id, revision, actor_id, request_id, edits, head, time)
    SELECT document.id, batch.revision, batch.actor, batch.request_id, batch.edits,
        coalesce(%(head)s, (SELECT head FROM {conversations} WHERE id = %(conversation)s)), %(moment)s
    FROM document, unnest(%(revisions)s::bigint[], %(actors)s::bigint[], %(request_ids)s::text[], %(edits)s::text[])
        AS batch (revision, actor, request_id, edits)
)
SELECT size, title FROM document
"""


def write_batches(place: Place, rows: Sequence[NewRow], *, head: int | None, moment: datetime) -> Written | None:
    """Record rows with consecutive revisions, if the document still stands just before the first; else none."""
    values = {
        "document": place.document,
        "conversation": place.conversation,
        "before": rows[0].revision - 1,
        "last": rows[-1].revision,
        "added": sum(len(row.edits) for row in rows),
        "head": head,
        "moment": moment,
        "revisions": [row.revision for row in rows],
        "actors": [row.who.actor for row in rows],
        "request_ids": [row.request_id for row in rows],
        "edits": [row.edits.decode() for row in rows],
    }
    with connection.cursor() as cursor:
        cursor.execute(_statement(), values)
        found = cursor.fetchone()
    return None if found is None else Written(*found)


@cache
def _statement() -> str:
    conversation = Document._meta.get_field("conversation").related_model
    assert not isinstance(conversation, str)
    return _RECORD.format(conversations=conversation._meta.db_table)

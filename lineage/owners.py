"""Conversations as owners of documents: what `documents.owners` asks for.

All of it may lie on the path of an edit, so what every group of edits needs is one plain statement each.
"""

from collections.abc import Collection, Mapping, Sequence

from django.db import connection

from console.clock import now
from console.events import Facts, publish_on_commit
from console.json_text import dumped
from console.models import Actor, Touched
from documents.owners import Edited
from lineage.entry_json import entry_json
from lineage.models import Conversation, Entry

_LOCK = "SELECT id, head FROM lineage_conversation WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"

# Waits for those who append, and not for others who share.
_SHARE = "SELECT head FROM lineage_conversation WHERE id = %s FOR SHARE"

_MOVE_HEADS = """
WITH moved AS (
    UPDATE lineage_conversation AS conversation SET head = new.head, touched = %s
    FROM unnest(%s::bigint[], %s::bigint[]) AS new (id, head) WHERE conversation.id = new.id
    RETURNING conversation.id
)
INSERT INTO console_touched (conversation) SELECT id FROM moved
"""


class ConversationOwners:
    """Implements `documents.owners.Owners`."""

    def root_of(self, conversation: int) -> int | None:
        return Conversation.objects.filter(pk=conversation).values_list("root_id", flat=True).first()

    def path_of(self, conversation: int) -> list[tuple[int, int]]:
        row = Conversation.objects.only("path").get(pk=conversation)
        return [(place, upto) for place, upto in row.segments if upto is not None]

    def lock(self, conversations: Collection[int]) -> dict[int, int]:
        with connection.cursor() as cursor:
            cursor.execute(_LOCK, [list(conversations)])
            return dict(cursor.fetchall())

    def share(self, conversation: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute(_SHARE, [conversation])
            (head,) = cursor.fetchone() or (0,)
            return int(head)

    def note_edited(self, edited: Sequence[Edited], heads: Mapping[int, int]) -> None:
        moment, after = now(), dict(heads)
        entries: dict[int, list[Entry]] = {}
        for one in edited:
            after[one.conversation] += 1
            data = {
                "document": one.document,
                "title": one.title,
                "first": one.first,
                "last": one.last,
                "batches": one.batches,
            }
            entry = Entry(
                conversation_id=one.conversation,
                seq=after[one.conversation],
                kind="document.edited",
                author=Actor(pk=one.who.actor, name=one.who.name, kind=one.who.kind),
                time=moment,
                data=dumped(data),
            )
            entries.setdefault(one.conversation, []).append(entry)
        Entry.objects.bulk_create([entry for made in entries.values() for entry in made])
        with connection.cursor() as cursor:
            cursor.execute(_MOVE_HEADS, [moment, list(entries), [after[conversation] for conversation in entries]])
        for conversation, made in entries.items():
            items = tuple(entry_json(entry) for entry in made)
            publish_on_commit(f"conversation:{conversation}", Facts(first=made[0].seq, items=items))

    def touch(self, conversation: int) -> None:
        Touched.objects.create(conversation=conversation)

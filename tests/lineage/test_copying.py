"""Many rows in one stream are the rows that single inserts make."""

import json

import pytest
from django.db import transaction

from lineage.actions.copying import WORTH_COPYING
from lineage.actions.entries import NewEdit, NewEntry, NewUsage, lock_conversation, place_entries
from lineage.models import Conversation, Entry, EntryEdit, EntryRest, Usage
from tests.factories import make_root, make_session

pytestmark = pytest.mark.django_db

ODD = "tab\t, line\n, backslash \\N \\., quote ' \" and \u2028 é 😀"


def new_entries(count: int) -> list[NewEntry]:
    return [
        NewEntry(
            kind="x.odd",
            model=[{"role": "user", "content": f"{number} {ODD} \0 \ud83d"}],
            data={"text": ODD * (1000 if number % 2 else 1)},
            prompt=ODD,
            head=number == 3,
            edits=[NewEdit(target=number)] if number else [],
            message_id="m1" if number < 3 else f"m{number}",
            usage=NewUsage(
                message_id="m1" if number < 3 else f"m{number}", output_tokens=number, input_tokens=9 - number % 9
            ),
        )
        for number in range(count)
    ]


def place(conversation: Conversation, entries: list[NewEntry]) -> list[Entry]:
    with transaction.atomic():
        return place_entries(conversation=lock_conversation(conversation.pk), entries=entries)


def rows_of(conversation: Conversation) -> list[tuple[object, ...]]:
    return [
        (
            entry.seq, entry.kind, entry.model, entry.data, entry.rest, entry.head, entry.edits, entry.message_id, entry.prompt,
            EntryRest.objects.get(entry=entry).data if entry.rest else None,
            list(EntryEdit.objects.filter(entry=entry).values_list("target", "action", "messages")),
        )
        for entry in Entry.objects.filter(conversation=conversation).order_by("seq")
    ]  # fmt: skip


def test_copied_rows_are_inserted_rows() -> None:
    root = make_root()
    many, single = make_session(root, "many"), make_session(root, "single")
    entries = new_entries(WORTH_COPYING)
    made = place(many, entries)
    for entry in entries:
        place(single, [entry])
    assert rows_of(many) == rows_of(single)
    assert [row.pk for row in made] == list(
        Entry.objects.filter(conversation=many).order_by("seq").values_list("pk", flat=True)
    )
    assert json.loads(made[0].model)[0]["content"] == f"0 {ODD} \0 \ud83d"


def test_the_largest_counts_of_an_answer_win_within_a_batch_and_over_batches() -> None:
    """A6: lines of one answer repeat its usage, early ones with too little."""
    session = make_session(make_root())
    place(session, new_entries(5))
    place(session, [NewEntry(kind="x.odd", usage=NewUsage(message_id="m1", output_tokens=1, cost_micros=7))])
    found = {
        row.message_id: (row.seq, row.input_tokens, row.output_tokens, row.cost_micros) for row in Usage.objects.all()
    }
    assert found == {"m1": (1, 9, 2, 7), "m3": (4, 6, 3, None), "m4": (5, 5, 4, None)}

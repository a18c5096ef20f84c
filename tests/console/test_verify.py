"""`manage.py verify` finds every kind of fault, and none where there is none (D7, R3)."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from documents.actions.documents import create_document
from documents.actions.editing import edit_document
from documents.edits import Edit
from documents.models import Document
from tests.factories import make_agent, make_root, say

pytestmark = pytest.mark.django_db(transaction=True)


def verify() -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("verify", stdout=out, stderr=StringIO())
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture
def document() -> Document:
    root = make_root()
    who, _ = make_agent(root)
    made = create_document(who=who, conversation=root.pk, title="Plan", text="<>\n")
    for number in range(70):  # beyond a snapshot
        edit_document(who=who, document=made.pk, edits=[Edit(old_string="<>", new_string=f"{number} <>")])
    assert who.conversation is not None
    say(who, who.conversation, "Hello", "Hi")
    return Document.objects.get(pk=made.pk)


def spoil(statement: str) -> None:
    """As a broken disk or a hand in the database would: past the triggers."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(statement)
        cursor.execute("SET session_replication_role = origin")


def test_a_sound_console_has_no_fault(document: Document) -> None:
    assert document.snapshots.count() == 2
    assert verify() == (0, "")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE documents_snapshot SET text = 'x' WHERE revision = 64", "the snapshot of revision 64 differs"),
        ("DELETE FROM documents_editbatch WHERE revision = 70", "its batches end at 69"),
        ("DELETE FROM documents_editbatch WHERE revision = 30", "does not apply|is followed by 31"),
        ("UPDATE documents_document SET revision = 69", "1 batches lie beyond"),
        ("DELETE FROM lineage_entry WHERE kind = 'assistant'", "own entries, from 1 to"),
        ("UPDATE lineage_conversation SET head = head + 1 WHERE kind = 'session'", "are expected"),
    ],
)
def test_each_fault_is_said(document: Document, statement: str, said: str) -> None:
    spoil(statement)
    code, lines = verify()
    assert code == 1
    assert any(part in lines for part in said.split("|")), lines

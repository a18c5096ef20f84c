"""`manage.py verify` finds every kind of fault, and none where there is none (D7, D18, R3, R9)."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from pytest_django import Settings

from console.board.keeping import fold_touched
from documents.actions.documents import create_document
from documents.actions.editing import edit_document
from documents.edits import Edit
from documents.models import Attachment, Document
from lineage.actions.abstracts import write_abstract
from lineage.actions.attachments import upload_attachment
from lineage.actions.branches import start_branch
from lineage.actions.landings import NewLanding, record_landing
from lineage.actions.memory import apply_memory_ops
from lineage.actions.notify import request_notify
from tests.factories import make_agent, make_person, make_root, say
from tests.lineage.working import work

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
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(statement)
        assert cursor.rowcount > 0


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


@pytest.fixture
def tree(tmp_path: Path, settings: Settings) -> Path:
    """A tally with branches, abstracts, a landing, memories, a told finish, one that waits, and an attachment; folded. Answers
    the folder of attachments."""
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"
    mira = make_person()
    root = make_root(mira)
    first, second = (start_branch(who=mira, source=root.pk, prompt=f"Number {n}.", title=f"No. {n}") for n in "12")
    upload_attachment(who=mira, conversation=second, filename="plan.md", chunks=[b"# Plan\n"])
    work()
    say(mira, first, "Go.", "Done.")
    request_notify(who=mira, caller=second, target=first, wake=False)
    work()
    request_notify(who=mira, caller=second, target=first, wake=False)
    for text in ("Begun.", "Half."):
        write_abstract(who=mira, conversation=second, text=text)
    landing = NewLanding(
        at=1, sha="0" * 40, base="1" * 40, target="main", commits=[], paths=[], divergence="", title="T"
    )
    record_landing(who=mira, conversation=first, new=landing)
    work()
    said = {"slug": "rounding", "kind": "fact", "body": "By law."}
    for op, line in (("add", "Tax is rounded"), ("update", "Tax is rounded per line")):
        apply_memory_ops(who=mira, root=root.pk, ops=[{"op": op, "line": line, **said}])
    fold_touched()
    return tmp_path / "attachments"


def test_a_sound_tree_has_no_fault(tree: Path) -> None:
    assert verify() == (0, "")


_TOLD_AGAIN = """
WITH s AS (
    INSERT INTO lineage_submission (conversation_id, type, status, reason, why, when_busy, kind, model, data, seq, created)
    SELECT conversation_id, type, status, reason, why, when_busy, kind, model, data, seq, created FROM lineage_submission
    WHERE id = (SELECT submission_id FROM lineage_note WHERE source = 'finished') RETURNING id
) INSERT INTO lineage_note (submission_id, source, sender_id, title, text, included)
SELECT s.id, n.source, n.sender_id, n.title, n.text, n.included FROM s, lineage_note n WHERE n.source = 'finished'
"""
_LIVES = "status = 'pending', outcome = '', ended = NULL, due = now() + interval '1 day'"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE lineage_entryedit SET target = 400", "edits entry 400, which it does not see"),
        ("UPDATE lineage_entry SET head = 400 WHERE kind = 'turn_end'", "the context begins at entry 400"),
        ("UPDATE lineage_conversation SET at = 90, head = 90 WHERE title = 'No. 2'", "/90, which is not there"),
        ("UPDATE lineage_submission SET seq = 400 WHERE type = 'input'", "/400 is not there"),
        ("UPDATE lineage_submission SET status = 'placed' WHERE type = 'input'", "no live task answers it"),
        (_TOLD_AGAIN, "it was told 2 times of the answer"),
        ("UPDATE lineage_delivered SET answer = 400", "/400, which is not there"),
        (
            "UPDATE lineage_task SET conversation_id = 4000 WHERE kind = 'memorize'",
            "its conversation #4000 is not there",
        ),
        (
            f"UPDATE lineage_task SET parent_id = 4000, {_LIVES} WHERE kind = 'memorize'",
            "the task 4000 that it belongs to does not",
        ),
        (
            "UPDATE lineage_task SET status = 'completing' WHERE kind = 'memorize'",
            "its children to end, and none lives",
        ),
        (
            "UPDATE lineage_task SET status = 'running', lease = gen_random_uuid(), lease_until = now() + interval '1 day' "
            "WHERE status = 'waiting'",
            "longer than any worker leases it",
        ),
        ("UPDATE lineage_task SET subject = 'task:4000' WHERE status = 'waiting'", "waits for task:4000, which is not"),
        ("UPDATE lineage_openabstract SET anchor = 400", "/400 is not there"),
        ("UPDATE lineage_tallyline SET seq = 400 WHERE kind = 'landing'", "/400 of a landing is not there"),
        ("DELETE FROM console_request WHERE request_id LIKE 'landing:%'", "has no note of it"),
        ("UPDATE lineage_memory SET line = 'Tax is free'", "memory rounding of #"),
        ("DELETE FROM lineage_memory", "it is not what its history left"),
        ("DELETE FROM lineage_memorychange WHERE version = 1", "its change 2.1 does not follow"),
        ("UPDATE documents_attachment SET size = 8", "its file has 7 bytes, and 8 are declared"),
        ("UPDATE documents_attachment SET chars = 8", "the row says extracted with 8"),
        ("UPDATE console_treerow SET state = 'failed' WHERE head > 3", "says failed at entry"),
        ("DELETE FROM console_treerow WHERE state = 'idle'", "is missing, and the conversation is idle"),
        ("UPDATE console_boardrow SET states = '{\"idle\": 9}'", 'counts {"idle": 9}'),
        ("UPDATE console_boardrow SET needing = 9", "and 9 that need a person"),
    ],
)
def test_each_fault_of_a_tree_is_said(tree: Path, statement: str, said: str) -> None:
    spoil(statement)
    code, lines = verify()
    assert code == 1
    assert said in lines, lines


@pytest.mark.parametrize(
    ("remove", "said"),
    [
        (lambda folder, name: (folder / name).unlink(), "its file is missing"),
        (lambda folder, name: (folder / f"{name}.extracted").unlink(), "it is extracted, and its sidecar is missing"),
    ],
)
def test_missing_files_are_said(tree: Path, remove: Callable[[Path, str], None], said: str) -> None:
    remove(tree, Attachment.objects.get().name)
    code, lines = verify()
    assert (code, lines.count("\n")) == (1, 1)
    assert said in lines

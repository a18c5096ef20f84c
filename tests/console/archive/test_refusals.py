"""A restore is refused in one sentence, and leaves nothing behind (C5)."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from console.archive.exporting import export_root
from console.archive.restoring import restore_root
from console.errors import DomainError
from console.models import Actor
from documents.attachments.storing import attachments_folder
from lineage.actions.attachments import upload_attachment
from lineage.models import Conversation, Entry
from tests.console.archive.trees import forget_everything, parts_of, put
from tests.factories import make_document, make_person, make_root, say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def file(tmp_path: Path, settings: Settings) -> Path:
    """An export whose tree is no more."""
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"
    forget_everything()
    mira = make_person()
    root = make_root(mira)
    say(mira, root.pk, "Hello", "Hi")
    make_document(mira, root.pk)
    upload_attachment(who=mira, conversation=root.pk, filename="a.md", chunks=[b"# A"])
    export_root(root=root.pk, path=tmp_path / "tree.zip")
    forget_everything()
    for stored in attachments_folder().iterdir():
        stored.unlink()
    return tmp_path / "tree.zip"


def refused(path: Path) -> str:
    """The code of the refusal; nothing is there after it."""
    before = Conversation.objects.count(), Entry.objects.count(), Actor.objects.count()
    with pytest.raises(DomainError) as error:
        restore_root(path=path)
    assert (Conversation.objects.count(), Entry.objects.count(), Actor.objects.count()) == before
    assert list(attachments_folder().iterdir()) == []
    return error.value.code


def test_taken_numbers(file: Path) -> None:
    taken = int(json.loads(parts_of(file)["manifest.json"])["root"])
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('lineage_conversation_id_seq')")
        (following,) = cursor.fetchone()
        cursor.execute("SELECT setval('lineage_conversation_id_seq', %s, false)", [taken])
        assert make_root().pk == taken
        assert refused(file) == "taken"
        cursor.execute("SELECT setval('lineage_conversation_id_seq', %s)", [following])
    assert Conversation.objects.get().pk == taken


def test_broken_files(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    broken = tmp_path / "broken.zip"
    for data, code in ((b"", "not_an_export"), (b"x" * 99, "not_an_export"), (whole[:-30], "not_an_export")):
        broken.write_bytes(data)
        assert refused(broken) == code
    parts = parts_of(file)
    (stored,) = [name for name in parts if name.startswith("attachments/")]
    entries = parts["tables/entry.jsonl"].splitlines(keepends=True)
    manifest = json.loads(parts["manifest.json"])

    def says(**changes: Any) -> bytes:
        return json.dumps({**manifest, **changes}).encode()

    other_place = json.loads(entries[0])
    other_place[1] = 77
    for change, code in (
        ({"manifest.json": says(format=2)}, "newer"),
        ({"tables/entry.jsonl": b"".join(entries[:-1])}, "damaged"),
        ({"../evil": b"x"}, "damaged"),
        ({"attachments/../../evil": b"x"}, "damaged"),
        ({f"attachments/{'0' * 32}.md": b"x"}, "damaged"),
        ({"tables/entry.jsonl": _same_size(entries[0], json.dumps(other_place).encode(), entries)}, "damaged"),
    ):
        assert refused(put(broken, {**parts, **change})) == code, change
    assert refused(put(broken, {name: data for name, data in parts.items() if name != stored})) == "damaged"
    restore_root(path=file)
    assert Entry.objects.count() == 3
    assert refused_again(file) == "taken"


def refused_again(path: Path) -> str:
    with pytest.raises(DomainError) as error:
        restore_root(path=path)
    assert len(list(attachments_folder().iterdir())) == 1  # the file of the first one stays
    return error.value.code


def _same_size(old: bytes, new: bytes, lines: list[bytes]) -> bytes:
    """The table with another first row, padded so that its size is as the manifest says."""
    compact = json.dumps(json.loads(new), separators=(",", ":"), ensure_ascii=False).encode()
    return compact.ljust(len(old) - 1) + b"\n" + b"".join(lines[1:])

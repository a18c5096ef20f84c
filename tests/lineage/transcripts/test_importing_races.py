"""T2, T3 under trouble: two importers at once, a crash in the middle, files that are written anew, moved or gone."""

import os
import shutil
from pathlib import Path
from unittest import mock

import pytest

from lineage.actions import imports
from lineage.models import Conversation, Entry, Kind, TranscriptConversation, TranscriptFile, TranscriptPiece
from lineage.transcripts import importing
from lineage.transcripts.folders import find_folders
from tests.lineage.transcripts.importing import copy_samples, import_all, imported_entries, new_entries, stored
from tests.lineage.transcripts.reading import Script
from tests.races import together

TREE = ("syn-01-tree", "syn-02-irregular", "syn-03-resumed", "syn-04-forked")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many transactions for a small file."""
    monkeypatch.setattr(importing, "PIECE_LINES", 3)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("small_pieces")
def test_two_importers_at_once_do_nothing_twice(tmp_path: Path) -> None:
    project = copy_samples(tmp_path / "project", *TREE)
    first, second = together(lambda: import_all(project), lambda: import_all(project))
    assert isinstance(first, list), first
    assert isinstance(second, list), second
    found, pieces = stored(), TranscriptPiece.objects.count()
    assert new_entries(first) + new_entries(second) == imported_entries().count()
    assert [one.root_id for one in Conversation.objects.all()] == [Conversation.objects.get(kind=Kind.ROOT).pk] * 9
    alone = copy_samples(tmp_path / "alone", *TREE)
    Conversation.objects.filter(kind=Kind.ROOT).update(folder="/elsewhere")
    import_all(alone)
    of_alone = {
        row.key: [(e.seq, e.kind, e.model) for e in Entry.objects.filter(conversation=row.conversation).order_by("seq")]
        for row in TranscriptConversation.objects.filter(folder__path=str(alone)).select_related("conversation")
    }
    assert {key: [entry[:3] for entry in one.entries] for key, one in found.items()} == of_alone
    assert pieces > 30


@pytest.mark.django_db
@pytest.mark.usefixtures("small_pieces")
def test_an_import_that_dies_in_the_middle_goes_on_where_it_was(tmp_path: Path) -> None:
    """Every transaction may be the last one; the next run brings the rest."""
    project = copy_samples(tmp_path / "project", *TREE)
    whole = copy_samples(tmp_path / "whole", *TREE)
    import_all(whole)
    expected = {key: one.entries for key, one in stored().items()}
    Conversation.objects.filter(kind=Kind.ROOT).update(folder="/elsewhere")
    take, left = imports.take_lines, 1

    def dying(**given: object) -> imports.Taken:
        nonlocal left
        left -= 1
        if left < 0:
            raise ConnectionError("the database went away")
        return take(**given)  # type: ignore[arg-type]

    for _ in range(60):
        left = 1
        with mock.patch.object(importing, "take_lines", dying):
            try:
                import_all(project)
            except ConnectionError:
                continue
        break
    found = {
        row.key: tuple(
            (e.seq, e.kind, e.model) for e in Entry.objects.filter(conversation=row.conversation).order_by("seq")
        )
        for row in TranscriptConversation.objects.filter(folder__path=str(project)).select_related("conversation")
    }
    assert found == {key: tuple(entry[:3] for entry in entries) for key, entries in expected.items()}


@pytest.mark.django_db
def test_a_transaction_that_fails_leaves_a_folder_that_can_be_read_on(tmp_path: Path) -> None:
    """The reader has run ahead of the database; it begins anew from what was recorded."""
    script = Script()
    script.prompt("One.")
    (tmp_path / "s1.jsonl").write_bytes(script.data())
    folder = importing.FolderImport(format="claude", path=tmp_path)
    found = find_folders([tmp_path])[0][0].files
    with mock.patch.object(imports, "_note_file", side_effect=ConnectionError), pytest.raises(ConnectionError):
        folder.read(found)
    assert not imported_entries().exists()
    assert new_entries(folder.read(found)) == 1
    script.answer("First.")
    (tmp_path / "s1.jsonl").write_bytes(script.data())
    assert new_entries(folder.read(found)) == 1


@pytest.mark.django_db
class TestFilesThatChange:
    """T3. A session of two entries was imported; then its file changes."""

    @pytest.fixture
    def script(self, tmp_path: Path) -> Script:
        script = Script()
        script.prompt("One.")
        script.answer("First.")
        self.path = tmp_path / "s1.jsonl"
        self.path.write_bytes(script.data())
        import_all(tmp_path)
        assert imported_entries().count() == 2
        return script

    def imported(self) -> int:
        return new_entries(import_all(self.path.parent))

    def test_half_a_line_waits(self, script: Script) -> None:
        script.prompt("Two.")
        data = script.data()
        self.path.write_bytes(data[:-10])
        assert self.imported() == 0
        self.path.write_bytes(data)
        assert self.imported() == 1

    def test_a_last_line_without_a_line_feed_is_read_once(self, script: Script) -> None:
        script.prompt("Two.")
        self.path.write_bytes(script.data()[:-1])
        assert self.imported() == 1
        script.prompt("Three.")
        self.path.write_bytes(script.data())
        assert self.imported() == 1
        assert list(Entry.objects.exclude(prompt="").order_by("seq").values_list("prompt", flat=True)) == [
            "One.",
            "Two.",
            "Three.",
        ]

    def test_a_file_written_anew_brings_what_it_has_not_yet_brought(self, script: Script) -> None:
        script.prompt("Two.")
        del script.lines[1]  # it shrank, and something new is in it
        self.path.write_bytes(script.data())
        assert self.imported() == 1
        assert TranscriptFile.objects.get().generation == 1
        assert self.imported() == 0

    def test_another_file_in_its_place_is_read_from_its_beginning(self, script: Script) -> None:
        other = Script("s2")
        for number in range(9):
            other.prompt(f"Other {number}.")
        self.path.unlink()
        self.path.write_bytes(other.data())
        assert self.imported() == 9
        assert TranscriptFile.objects.get().generation == 1
        assert Conversation.objects.filter(kind=Kind.SESSION).count() == 2

    def test_a_copy_in_its_place_goes_on(self, script: Script) -> None:
        copy = self.path.with_name("copy")
        shutil.copy(self.path, copy)
        copy.replace(self.path)
        assert self.imported() == 0
        script.prompt("Two.")
        self.path.write_bytes(script.data())
        assert self.imported() == 1
        assert TranscriptFile.objects.get().generation == 0

    def test_a_file_that_vanishes_takes_nothing_along(self, script: Script) -> None:
        self.path.unlink()
        assert self.imported() == 0
        assert imported_entries().count() == 2
        self.path.write_bytes(script.data())
        assert self.imported() == 0

    def test_an_emptied_file_takes_nothing_along(self, script: Script) -> None:
        os.truncate(self.path, 0)
        assert self.imported() == 0
        assert imported_entries().count() == 2

    def test_a_file_that_cannot_be_read_is_said_and_the_others_are_read(self, script: Script) -> None:
        other = Script("s2")
        other.prompt("Other.")
        self.path.with_name("s2.jsonl").write_bytes(other.data())
        found = find_folders([self.path.parent])[0]
        self.path.unlink()
        readings = list(importing.import_folders(found))
        failed = {reading.file.name: reading.failed for reading in readings}
        assert failed == {"s1.jsonl": "No such file or directory", "s2.jsonl": ""}
        assert new_entries(readings) == 1


@pytest.mark.django_db
def test_a_folder_whose_conversations_were_erased_is_imported_anew(tmp_path: Path) -> None:
    """T1: an owner may erase the root and import anew."""
    script = Script()
    script.prompt("One.")
    (tmp_path / "s1.jsonl").write_bytes(script.data())
    import_all(tmp_path)
    TranscriptConversation.objects.all().delete()
    assert new_entries(import_all(tmp_path)) == 1
    assert Conversation.objects.filter(kind=Kind.SESSION).count() == 2


@pytest.mark.django_db
def test_lines_of_an_erased_conversation_are_left_out_and_counted(tmp_path: Path) -> None:
    scripts = {name: Script(name) for name in ("s1", "s2")}
    for name, script in scripts.items():
        script.prompt("One.")
        (tmp_path / f"{name}.jsonl").write_bytes(script.data())
    import_all(tmp_path)
    TranscriptConversation.objects.filter(key="session:s1").delete()
    for name, script in scripts.items():
        script.answer("First.")
        (tmp_path / f"{name}.jsonl").write_bytes(script.data())
    readings = import_all(tmp_path)
    assert [(new_entries([one]), one.carried.left_out) for one in readings] == [(0, 1), (1, 0)]

"""`edit_file` (A2, A3): exactly once, in one step, and only on the file that was shown."""

import os
import stat
from pathlib import Path

import pytest

from lineage.agent.failures import ToolFailed
from lineage.agent.folder import editing
from lineage.agent.folder.editing import FileChanged, edit_file, preview_edit


def test_an_edit_applies_exactly_once(tmp_path: Path) -> None:
    file = tmp_path / "a.sh"
    file.write_bytes(b"one\r\ntwo\r\ntwo\r\n")
    file.chmod(0o755)
    assert edit_file(str(tmp_path), "a.sh", "one", "eins") == "a.sh was edited."
    assert file.read_bytes() == b"eins\r\ntwo\r\ntwo\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
    for old, saying in (("two", "occurs 2 times"), ("three", "does not occur")):
        with pytest.raises(ToolFailed, match=saying):
            edit_file(str(tmp_path), "a.sh", old, "x")
    assert file.read_bytes() == b"eins\r\ntwo\r\ntwo\r\n"
    assert os.listdir(tmp_path) == ["a.sh"]


def test_an_empty_old_string_creates_a_file_and_its_folders(tmp_path: Path) -> None:
    shown = preview_edit(str(tmp_path), "new/deep/a.txt", "", "hello\n")
    assert (shown.hash, shown.added, shown.removed) == ("", 1, 0)
    assert shown.diff == "--- /dev/null\n+++ b/new/deep/a.txt\n@@ -0,0 +1 @@\n+hello\n"
    assert not (tmp_path / "new").exists()
    assert edit_file(str(tmp_path), "new/deep/a.txt", "", "hello\n", expected="") == "new/deep/a.txt was created."
    assert (tmp_path / "new/deep/a.txt").read_text() == "hello\n"
    with pytest.raises(ToolFailed, match="exists already"):
        edit_file(str(tmp_path), "new/deep/a.txt", "", "again")
    with pytest.raises(ToolFailed, match="empty old_string to create"):
        edit_file(str(tmp_path), "other.txt", "a", "b")


def test_the_preview_shows_the_change(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree")
    shown = preview_edit(str(tmp_path), "a.txt", "two\n", "2\nzwei\n")
    assert (shown.added, shown.removed, shown.characters) == (2, 1, len(shown.diff))
    assert "-two\n+2\n+zwei\n three\n\\ No newline at end of file\n" in shown.diff
    assert len(shown.hash) == 64


def test_a_file_changed_since_it_was_shown_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    shown = preview_edit(str(tmp_path), "a.txt", "two", "2")
    (tmp_path / "a.txt").write_text("zero\none\ntwo\n")
    with pytest.raises(FileChanged):
        edit_file(str(tmp_path), "a.txt", "two", "2", expected=shown.hash)
    assert (tmp_path / "a.txt").read_text() == "zero\none\ntwo\n"
    again = preview_edit(str(tmp_path), "a.txt", "two", "2")
    edit_file(str(tmp_path), "a.txt", "two", "2", expected=again.hash)
    assert (tmp_path / "a.txt").read_text() == "zero\none\n2\n"


def test_what_is_no_text_is_not_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    (tmp_path / "zero").write_bytes(b"a\0b")
    (tmp_path / "big").write_bytes(b"a" * 2_000)
    monkeypatch.setattr(editing, "FILE_BYTES", 1_000)
    for name, saying in (
        ("latin", "not UTF-8"),
        ("zero", "zero bytes"),
        ("big", "larger than 1000"),
        (".", "a folder"),
    ):
        with pytest.raises(ToolFailed, match=saying):
            edit_file(str(tmp_path), name, "a", "b")
    with pytest.raises(ToolFailed, match="surrogate"):
        edit_file(str(tmp_path), "new", "", "half \ud800")


def test_a_long_diff_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editing, "PREVIEW_CHARACTERS", 100)
    shown = preview_edit(str(tmp_path), "a.txt", "", "line\n" * 100)
    assert shown.characters > 600
    assert len(shown.diff) == 100
    assert shown.added == 100

"""`read_file`, `list_dir` and `search` (A2)."""

import os
from pathlib import Path

import pytest

from lineage.agent.failures import ToolFailed
from lineage.agent.folder import reading, searching
from lineage.agent.folder.reading import READ_CHARACTERS, list_dir, read_file
from lineage.agent.folder.searching import MATCHES, search
from lineage.agent.messages import RESULT_CHARACTERS


def _write(root: Path, name: str, content: str | bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_a_short_file_is_whole(tmp_path: Path) -> None:
    _write(tmp_path, "a.txt", "one\r\ntwo\n")
    assert read_file(str(tmp_path), "a.txt") == "one\r\ntwo\n\n(Lines 1 to 2 of 2 of a.txt. Nothing is left out.)"


def test_a_long_file_says_which_lines_are_not_shown(tmp_path: Path) -> None:
    _write(tmp_path, "a.txt", "".join(f"{n}\n" for n in range(1, 5_001)))
    first = read_file(str(tmp_path), "a.txt")
    assert first.endswith("(Lines 1 to 2000 of 5000 of a.txt. Not shown: lines 2001 to 5000.)")
    next_part = read_file(str(tmp_path), "a.txt", 2_001)
    assert next_part.startswith("2001\n")
    assert "Not shown: lines 1 to 2000 and 4001 to 5000." in next_part
    assert read_file(str(tmp_path), "a.txt", 4_999, 9_999).startswith("4999\n5000\n")
    with pytest.raises(ToolFailed, match="no line 5001"):
        read_file(str(tmp_path), "a.txt", 5_001)
    for start, end in ((0, None), (5, 4)):
        with pytest.raises(ToolFailed, match="start_line"):
            read_file(str(tmp_path), "a.txt", start, end)


def test_wide_files_are_bounded_in_characters(tmp_path: Path) -> None:
    _write(tmp_path, "a.txt", "".join("x" * 1_500 + "\n" for _ in range(100)))
    text = read_file(str(tmp_path), "a.txt")
    assert len(text) < RESULT_CHARACTERS
    assert "Lines 1 to 19 of 100" in text
    _write(tmp_path, "b.txt", "y" * 3_000_000)
    assert "this line has 3000000 characters" in read_file(str(tmp_path), "b.txt")
    assert READ_CHARACTERS < RESULT_CHARACTERS


def test_what_is_no_text_is_said(tmp_path: Path) -> None:
    _write(tmp_path, "a.bin", b"\x7fELF\0\0")
    _write(tmp_path, "latin.txt", "caf\xe9".encode("latin-1"))
    _write(tmp_path, "empty", "")
    with pytest.raises(ToolFailed, match="zero bytes"):
        read_file(str(tmp_path), "a.bin")
    assert "not UTF-8" in read_file(str(tmp_path), "latin.txt")
    assert read_file(str(tmp_path), "empty") == "empty is empty."
    with pytest.raises(ToolFailed, match="list_dir"):
        read_file(str(tmp_path), "none.txt")
    with pytest.raises(ToolFailed, match="is a folder"):
        read_file(str(tmp_path), ".")


def test_huge_files_are_looked_through_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SCANNED_BYTES", 3_000_000)
    with (tmp_path / "big").open("wb") as file:
        for _ in range(40):
            file.write(b"line\n" * 40_000)
    assert "of more than" in read_file(str(tmp_path), "big")


def test_unreadable_files_are_said(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        (tmp_path / "a").symlink_to("gone")  # root reads everything: a dangling link instead
        with pytest.raises(ToolFailed, match="no file"):
            read_file(str(tmp_path), "a")
        return
    _write(tmp_path, "a", "x")
    (tmp_path / "a").chmod(0)
    with pytest.raises(ToolFailed, match="permissions"):
        read_file(str(tmp_path), "a")


def test_folders_come_first_and_sizes_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path, "a.txt", "12345")
    _write(tmp_path, "z/x", "")
    (tmp_path / "link").symlink_to("a.txt")
    assert list_dir(str(tmp_path)) == "z/\na.txt (5 bytes)\nlink -> a.txt"
    monkeypatch.setattr(reading, "LISTED", 2)
    assert "3 names in all; the first 2" in list_dir(str(tmp_path))
    (tmp_path / "none").mkdir()
    assert list_dir(str(tmp_path), "none") == "none is empty."
    with pytest.raises(ToolFailed, match="not a folder"):
        list_dir(str(tmp_path), "a.txt")


def test_search_names_file_and_line(tmp_path: Path) -> None:
    _write(tmp_path, "src/a.py", "x = 1\nneedle here\n")
    _write(tmp_path, "src/b.md", "Needle there\n")
    _write(tmp_path, ".git/config", "needle\n")
    _write(tmp_path, "bin", b"needle\0")
    root = str(tmp_path)
    assert search(root, "needle") == "src/a.py:2: needle here\n\n(1 files are not text and were passed over.)"
    assert search(root, "needle", ignore_case=True).startswith("src/a.py:2: needle here\nsrc/b.md:1: Needle there")
    assert search(root, "needle", "src", ignore_case=True, glob="*.md") == "src/b.md:1: Needle there"
    assert search(root, "needle", ignore_case=True, glob="src/*.py") == "src/a.py:2: needle here"
    assert search(root, "needle", "src/a.py") == "src/a.py:2: needle here"
    assert "Try ignore_case" in search(root, "NEEDLE")
    assert "2 files" in search(root, "nothing at all", "src")
    for wrong in ("", "a\nb"):
        with pytest.raises(ToolFailed, match="part of one line"):
            search(root, wrong)


def test_search_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path, "a.txt", "hit\n" * 500)
    _write(tmp_path, "b.txt", f"{'x' * 5_000}hit{'y' * 5_000}")
    found = search(str(tmp_path), "hit")
    assert found.count("a.txt:") == MATCHES
    assert "there are more" in found
    (line,) = search(str(tmp_path), "hit", "b.txt").split("\n")
    assert "hit" in line
    assert len(line) < 330
    monkeypatch.setattr(searching, "FILE_BYTES", 3_000)
    assert "larger than 3000 bytes: b.txt" in search(str(tmp_path), "nothing")
    monkeypatch.setattr(searching, "SECONDS", -1.0)
    assert "has not seen all" in search(str(tmp_path), "nothing")

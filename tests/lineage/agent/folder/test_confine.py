"""No path leaves the folder (A2): links, `..`, whole paths, races, and things that are not files."""

import os
import socket
import threading
from pathlib import Path

import pytest

from lineage.agent.failures import ToolFailed
from lineage.agent.folder.confine import open_file, place_of
from lineage.agent.folder.editing import edit_file, preview_edit
from lineage.agent.folder.reading import list_dir, read_file
from lineage.agent.folder.searching import search


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A folder with a secret beside it."""
    (tmp_path / "secret.txt").write_text("outside")
    folder = tmp_path / "inside"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("inside\n")
    (folder / "sub" / "b.txt").write_text("deeper\n")
    return str(folder)


def _refused(root: str, path: str, saying: str) -> None:
    for attempt in (
        lambda: read_file(root, path),
        lambda: list_dir(root, path),
        lambda: search(root, "outside", path),
        lambda: preview_edit(root, path, "outside", "changed"),
        lambda: edit_file(root, path, "outside", "changed"),
    ):
        with pytest.raises(ToolFailed, match=saying):
            attempt()
    assert (Path(root).parent / "secret.txt").read_text() == "outside"


@pytest.mark.parametrize("path", ["../secret.txt", "sub/../../secret.txt", "/etc/passwd", "./../inside/../secret.txt"])
def test_paths_outside_are_refused(root: str, path: str) -> None:
    _refused(root, path, "outside the working folder")


@pytest.mark.parametrize("target", ["../secret.txt", "/etc/passwd", "sub/../../secret.txt", "hop"])
def test_links_that_lead_outside_are_refused(root: str, target: str) -> None:
    (Path(root) / "hop").symlink_to("../secret.txt")
    (Path(root) / "link").symlink_to(target)
    _refused(root, "link", "outside the working folder")


def test_a_linked_folder_that_leads_outside_is_refused(root: str) -> None:
    (Path(root) / "up").symlink_to("..")
    _refused(root, "up/secret.txt", "outside the working folder")
    assert "outside" not in search(root, "outside").split("No line")[0]


def test_links_within_the_folder_work(root: str) -> None:
    (Path(root) / "link").symlink_to("sub")
    (Path(root) / "sub" / "back").symlink_to("../a.txt")
    assert read_file(root, "link/back").startswith("inside\n")
    assert read_file(root, f"{root}/sub/../link/b.txt").startswith("deeper\n")
    edit_file(root, "link/back", "inside", "changed")
    assert (Path(root) / "a.txt").read_text() == "changed\n"
    assert (Path(root) / "sub" / "back").is_symlink()


def test_a_circle_of_links_is_refused(root: str) -> None:
    (Path(root) / "one").symlink_to("two")
    (Path(root) / "two").symlink_to("one")
    with pytest.raises(ToolFailed, match="circle"):
        read_file(root, "one")


def test_fifos_sockets_and_devices_are_refused_at_once(root: str) -> None:
    os.mkfifo(Path(root) / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(root)
        try:
            listener.bind("sock")
        finally:
            os.chdir(here)
        for name, kind in (("pipe", "a FIFO"), ("sock", "a socket")):
            with pytest.raises(ToolFailed, match=kind):
                read_file(root, name)
            with pytest.raises(ToolFailed, match=kind):
                edit_file(root, name, "a", "b")
        assert "a FIFO" in list_dir(root)
        assert search(root, "inside").startswith("a.txt:1: inside")
    with pytest.raises(ToolFailed, match="a device"):
        read_file("/dev", "null")


def test_a_file_swapped_for_a_link_after_it_was_looked_at_is_not_followed(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def swapping(path: str, flags: int, *args: int, **kwargs: int) -> int:
        if path == "a.txt":
            (Path(root) / "a.txt").unlink()
            (Path(root) / "a.txt").symlink_to("../secret.txt")
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", swapping)
    with pytest.raises(ToolFailed, match="changed while"):
        read_file(root, "a.txt")


def test_a_folder_moved_outside_during_the_walk_gives_no_way_up(root: str) -> None:
    (Path(root) / "sub" / "deep").mkdir()
    with place_of(root, "sub/deep/../x") as place:
        (Path(root) / "sub").rename(Path(root).parent / "moved")
        assert place.stat() is None
        assert os.fstat(place.folder).st_ino == (Path(root).parent / "moved").stat().st_ino


def test_swapping_in_a_loop_never_shows_the_secret(root: str) -> None:
    """A thread swaps a folder for a link outside while it is read: either the inner file, or a refusal."""
    stop = threading.Event()
    base = Path(root)
    (base / "door").mkdir()
    (base / "door" / "secret.txt").write_text("harmless")

    def swap() -> None:
        while not stop.is_set():
            (base / "door").rename(base / "kept")
            (base / "door").symlink_to("..")
            (base / "door").unlink()
            (base / "kept").rename(base / "door")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = set()
        for _ in range(1_500):
            try:
                seen.add(read_file(root, "door/secret.txt").split("\n")[0])
            except ToolFailed:
                seen.add("refused")
    finally:
        stop.set()
        thread.join()
    assert "outside" not in seen


def test_a_missing_root_is_said(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="cannot be opened"):
        read_file(str(tmp_path / "none"), "a")


def test_descriptors_are_given_back(root: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        with place_of(root, "sub/b.txt") as place, open_file(place):
            pass
        with pytest.raises(ToolFailed):
            read_file(root, "sub/none")
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_consoles_own_data_is_out_of_reach(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(root) / ".console"
    (own / "run").mkdir(parents=True)
    (own / "secret_key").write_text("outside")
    monkeypatch.setenv("CONSOLE_DATA", str(own))
    (Path(root) / "way").symlink_to(".console")
    for path in (".console/secret_key", "way/secret_key", "sub/../.console/secret_key"):
        with pytest.raises(ToolFailed, match="console's own data"):
            read_file(root, path)
        with pytest.raises(ToolFailed, match="console's own data"):
            edit_file(root, path, "outside", "mine")
    for path in (".console", "way", ".console/run"):
        with pytest.raises(ToolFailed, match="console's own data"):
            list_dir(root, path)
    with pytest.raises(ToolFailed, match="console's own data"):
        read_file(str(own), "secret_key")
    assert "No line" in search(root, "outside")
    assert ".console/" in list_dir(root)
    assert (own / "secret_key").read_text() == "outside"

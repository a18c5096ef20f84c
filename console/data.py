"""Where this installation keeps its things, known before Django loads.

Owns the data directory's layout and the five environment variables that must be read before the settings
are: `CONSOLE_DATA`, `DATABASE_URL`, `REDIS_URL`, `SECRET_KEY` and `PUBLIC_URL`. Nothing here starts, opens or waits for
anything: `console.embedded` does.
"""

import hashlib
import os
import secrets
from pathlib import Path
from urllib.parse import quote

CHECKOUT = Path(__file__).resolve().parent.parent

DATABASE_NAME = "console"
POSTGRES_PORT = 5432  # only names the socket file; nothing listens on TCP
POSTGRES_SOCKET = f".s.PGSQL.{POSTGRES_PORT}"
VALKEY_SOCKET = "valkey.sock"
ADDRESS = "address"
DEFAULT_ADDRESS = "http://127.0.0.1:8000/"

# A unix socket's path has at most 107 bytes on Linux and 103 on macOS; the smaller one serves both.
LONGEST_SOCKET_PATH = 103


def data_dir() -> Path:
    """The data directory, absolute: `CONSOLE_DATA`, else `.console` under the checkout. May not exist yet."""
    return Path(os.environ.get("CONSOLE_DATA") or CHECKOUT / ".console").expanduser().resolve()


def has_own_database() -> bool:
    """True when no `DATABASE_URL` points elsewhere, so that the embedded PostgreSQL is the database."""
    return not os.environ.get("DATABASE_URL")


def has_own_valkey() -> bool:
    """True when no `REDIS_URL` points elsewhere, so that the embedded Valkey is the fan-out."""
    return not os.environ.get("REDIS_URL")


def database_url() -> str:
    """`DATABASE_URL`, else the embedded PostgreSQL's: a form that libpq and dj-database-url both read."""
    if not has_own_database():
        return os.environ["DATABASE_URL"]
    return f"postgresql://{DATABASE_NAME}@{quote(str(socket_dir()), safe='')}:{POSTGRES_PORT}/{DATABASE_NAME}"


def redis_url() -> str:
    """`REDIS_URL`, else the embedded Valkey's socket as `unix:///path`."""
    if not has_own_valkey():
        return os.environ["REDIS_URL"]
    return f"unix://{quote(str(socket_dir() / VALKEY_SOCKET))}"


def socket_dir(directory: Path | None = None) -> Path:
    """The folder of both engines' sockets: inside the data directory, or a short one under /tmp when that
    path is too long for a socket. Derived from the path alone, so that every process finds the same one."""
    directory = directory or data_dir()
    inside = directory / "run"
    if len(os.fsencode(inside / POSTGRES_SOCKET)) <= LONGEST_SOCKET_PATH:
        return inside
    name = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    # /tmp and not TMPDIR: a cron job and a shell must agree. `console.embedded` refuses one that is not ours.
    return Path(f"/tmp/lineage-console-{os.getuid()}-{name}")  # noqa: S108


def secret_key() -> str:
    """`SECRET_KEY`, else the key of the data directory, made once and readable only by its owner (S3).

    Raises OSError when the data directory cannot be written.
    """
    return os.environ.get("SECRET_KEY") or _read_or_make_secret(data_dir() / "secret_key")


def cookie_suffix() -> str:
    """Eight hex digits that belong to this data directory, for cookie names: cookies ignore ports, so two
    consoles on one host would sign each other out (S3). Machines that share `SECRET_KEY` share it."""
    return hashlib.sha256(b"cookie names:" + secret_key().encode()).hexdigest()[:8]


def public_url() -> str:
    """Where people reach the console: `PUBLIC_URL`, else what the last `up` of this data directory listened on."""
    if os.environ.get("PUBLIC_URL"):
        return os.environ["PUBLIC_URL"]
    try:
        return (data_dir() / ADDRESS).read_text(encoding="ascii").strip()
    except OSError:
        return DEFAULT_ADDRESS


def remember_address(address: str) -> None:
    """Keep what `up` listens on, for the links that commands beside it print."""
    (data_dir() / ADDRESS).write_text(address, encoding="ascii")


def make_data_dir(directory: Path | None = None) -> Path:
    """Make the data directory, private to its owner, when it is missing; one that exists keeps its mode."""
    directory = directory or data_dir()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _read_or_make_secret(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        make_data_dir(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(50) + "\n")
            file.flush()
            os.fsync(file.fileno())
        # link() refuses an existing name: of two processes that start together both read the first one's key.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)
    return path.read_text(encoding="ascii").strip()

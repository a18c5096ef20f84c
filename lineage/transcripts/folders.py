"""Finding session files on disk: which format a file has, which folder it is read with, and in what order (T1). No database.

A *folder* is what one reader reads together: a project folder of Claude Code with its agents' files.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lineage.transcripts.compressed import COMPRESSED, head_of, is_compressed, plain_path
from lineage.transcripts.lines import decode_object

SUFFIX = ".jsonl"
SUFFIXES = (SUFFIX, SUFFIX + COMPRESSED)
META_SUFFIX = ".meta.json"  # beside an agent's file
HEAD = 256 * 1024  # bytes looked at for a file's format and first clock: a first line can hold a long prompt
TAIL = 64 * 1024  # bytes looked at for its last clock
_CLAUDE_KEYS = ("sessionId", "leafUuid", "messageId", "uuid")
_SUBAGENTS = "subagents"
_CODEX_FOLDERS = ("sessions", "archived_sessions")


@dataclass(frozen=True, kw_only=True)
class Found:
    """A session file. `name` is its path inside the folder, as it is or was before it was compressed."""

    path: Path
    name: str
    session: str  # the name of the file whose session it belongs to: its own, or for an agent's file its session's
    agent: bool = False
    order: tuple[Any, ...] = ()  # forks after what they copy, then by first and last clock


@dataclass(kw_only=True)
class FoundFolder:
    """Files that are read together, in reading order."""

    format: str
    path: Path
    files: list[Found] = field(default_factory=list)


def default_folders() -> list[Path]:
    """Where the agents write on this machine, whether they have yet or not."""
    home = Path.home()
    claude = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"
    codex = Path(os.environ.get("CODEX_HOME") or home / ".codex") / "sessions"
    return [claude, codex, home / ".pi" / "agent" / "sessions"]


def find_folders(paths: Sequence[Path]) -> tuple[list[FoundFolder], list[Path]]:
    """(folders with the session files under these paths, files that are none). A path that is not there has no files."""
    return group_files(files_under(paths))


def files_under(paths: Sequence[Path]) -> list[Path]:
    """Files that may be session files. One that is given by itself comes with its agents'."""
    found: dict[Path, None] = {}
    for given in paths:
        path = given.resolve()
        if path.is_file():
            found[path] = None
            path = path.with_suffix("") / _SUBAGENTS
        for folder, _, names in os.walk(path):
            found |= dict.fromkeys(Path(folder, name) for name in names if name.endswith(SUFFIXES))
    return list(found)


def group_files(paths: Sequence[Path]) -> tuple[list[FoundFolder], list[Path]]:
    """The same for files that were found."""
    folders: dict[tuple[str, Path], FoundFolder] = {}
    others: list[Path] = []
    for path in paths:
        if is_compressed(path) and plain_path(path).exists():
            continue  # it is being compressed, or unpacked again: the plain one counts
        format = format_of(path)
        if format is None:
            others.append(path)
            continue
        root, name = place_of(format, plain_path(path))
        folder = folders.setdefault((format, root), FoundFolder(format=format, path=root))
        agent = _is_agent(path)
        stem, _, inside = name.partition(f"/{_SUBAGENTS}/")
        session = f"{stem}{SUFFIX}" if agent and inside else name
        folder.files.append(Found(path=path, name=name, session=session, agent=agent, order=_order(path)))
    for folder in folders.values():
        folder.files.sort(key=lambda file: (file.agent, *file.order, file.name))
    return [folders[key] for key in sorted(folders)], others


def format_of(path: Path) -> str | None:
    """The format of a file by its first lines, or none when it is no transcript, or has no whole line yet."""
    for value in _head(path):
        kind = value.get("type")
        if kind == "session" and isinstance(value.get("id"), str) and ("cwd" in value or "version" in value):
            return "pi"
        if isinstance(value.get("payload"), dict) and isinstance(kind, str) and "timestamp" in value:
            return "codex"
        if (
            kind is None
            and isinstance(value.get("id"), str)
            and "timestamp" in value
            and path.name.startswith("rollout-")
        ):
            return "codex"  # the oldest ones have no envelopes
        if any(isinstance(value.get(key), str) for key in _CLAUDE_KEYS) and isinstance(kind, str):
            return "claude"
    if is_compressed(path) and path.name.startswith("rollout-"):
        return "codex"  # damaged from the begin: reading it says so
    return None


def place_of(format: str, path: Path) -> tuple[Path, str]:
    """(the folder that a file is read with, its name in it)."""
    parts = path.parts
    if format == "claude" and _SUBAGENTS in parts[:-1]:
        root = Path(*parts[: len(parts) - 2 - parts[::-1].index(_SUBAGENTS)])
    elif format == "codex" and any(name in parts for name in _CODEX_FOLDERS):
        # Archived ones are moved from one to the other: both belong to the same home.
        root = Path(*parts[: max(parts.index(name) for name in _CODEX_FOLDERS if name in parts)])
    else:
        root = path.parent
    return root, path.relative_to(root).as_posix()


def meta_of(path: Path) -> dict[str, Any] | None:
    """What the file beside an agent's file says of it, if it is there and whole."""
    try:
        beside = path.with_name(plain_path(path).name.removesuffix(SUFFIX) + META_SUFFIX)
        found = json.loads(beside.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _is_agent(path: Path) -> bool:
    return path.name.startswith("agent-")


def _head(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of the first lines."""
    try:
        with path.open("rb") as file:
            data = head_of(file, HEAD) if is_compressed(path) else file.read(HEAD)
            whole = len(data) < HEAD
    except OSError:
        return
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if number == len(lines) - 1 and not whole:
            return  # half a line
        value, _ = decode_object(line)
        if value is not None:
            yield value


def _order(path: Path) -> tuple[Any, ...]:
    first, fork = "", False
    for value in _head(path):
        first = first or _clock(value)
        fork = fork or _hangs_on_another(value)
        if first and (fork or "uuid" in value or "payload" in value or value.get("type") == "session"):
            break
    return fork, first, _last_clock(path)


def _hangs_on_another(value: dict[str, Any]) -> bool:
    """Whether a first line says that the file copies or goes on from another one."""
    payload = value.get("payload")
    meta = payload if isinstance(payload, dict) else {}
    hooks = (
        value.get("forkedFrom"),
        value.get("parentSession"),
        meta.get("forked_from_id"),
        meta.get("parent_thread_id"),
    )
    return any(hooks)


def _last_clock(path: Path) -> str:
    if is_compressed(path):
        return ""  # it would have to be unpacked whole
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            lines = file.read().split(b"\n")
    except OSError:
        return ""
    return next((clock for line in reversed(lines) if (clock := _clock(decode_object(line)[0] or {}))), "")


def _clock(value: dict[str, Any]) -> str:
    clock = value.get("timestamp")
    return clock if isinstance(clock, str) else ""

"""One line for a tool call and one for its result, as people read them: `console/live.py +12 −3`, `exit 0 · 4.2 s`. Pure.

The names of tools are the agent's own; Claude Code, Codex and pi name the same few things differently.
"""

import re
from typing import Any

LINE = 200  # characters of a summary line: one line of a wide page
_MINUS = "\N{MINUS SIGN}"
_EXIT = re.compile(r"(?:Error: )?(?:Exit code|Process exited with code|Command exited with code)[: ]+(-?\d+)")
_COMMAND_KEYS = ("command", "cmd", "script")
_PATH_KEYS = ("file_path", "path", "notebook_path", "filename", "file")
_TEXT_KEYS = (
    "description",
    "query",
    "pattern",
    "url",
    "prompt",
    "title",
    "name",
    "subject",
    "skill",
    "task_id",
    "message",
)


def call_line(name: str, given: Any, folder: str = "") -> str:
    """What a call does, without the tool's name; empty when its input says nothing."""
    if not isinstance(given, dict):
        return flat(given) if isinstance(given, str) else ""
    kind = name.lower()
    if kind in ("task", "agent"):
        return flat(
            ": ".join(part for part in (text_of(given, "subagent_type"), text_of(given, "description")) if part)
        )
    command = command_of(given)
    if command:
        return flat(command)
    path = next((text_of(given, key) for key in _PATH_KEYS if text_of(given, key)), "")
    pattern = text_of(given, "pattern")
    if pattern:
        return flat(f"{pattern} in {short_path(path, folder)}" if path else pattern)
    if path:
        return flat(f"{short_path(path, folder)} {_change(given)}".rstrip())
    if isinstance(given.get("todos"), list):
        return todos_line(given["todos"], "content")
    if isinstance(given.get("plan"), list):
        return todos_line(given["plan"], "step")
    if isinstance(given.get("questions"), list):
        return flat(" / ".join(text_of(q, "question") for q in given["questions"] if isinstance(q, dict)))
    for key in _TEXT_KEYS:
        if text_of(given, key):
            return flat(text_of(given, key))
    return flat(next((value for value in given.values() if isinstance(value, str) and value.strip()), ""))


def command_of(given: dict[str, Any]) -> str:
    """The command of a shell call: text, or the last of `["bash", "-lc", text]`."""
    for key in _COMMAND_KEYS:
        value = given.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            return str(value[-1]) if len(value) == 3 and value[1] in ("-c", "-lc") else " ".join(value)
    return ""


def todos_line(todos: list[Any], key: str) -> str:
    """`2 of 5 done · Write the tests`: what is under way."""
    items = [item for item in todos if isinstance(item, dict)]
    done = sum(item.get("status") in ("completed", "done") for item in items)
    now = next((text_of(item, key) for item in items if item.get("status") == "in_progress"), "")
    return flat(f"{done} of {len(items)} done" + (f" · {now}" if now else ""))


def exit_code(text: str) -> int | None:
    """The exit code that a shell tool's result tells, if it does."""
    found = _EXIT.search(text[:2000])
    return int(found.group(1)) if found else None


def counts_line(added: int, removed: int) -> str:
    """`+12 −3`."""
    return f"+{added} {_MINUS}{removed}"


def patch_counts(patch: list[Any]) -> tuple[int, int]:
    """(lines added, lines removed) of hunks `[{lines: ["+a", "-b", " c"]}]`."""
    lines = [
        line for hunk in patch if isinstance(hunk, dict) for line in hunk.get("lines") or () if isinstance(line, str)
    ]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def seconds_text(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def joined(*parts: str) -> str:
    """The parts that are not empty, parted by a middle dot."""
    return flat(" · ".join(part for part in parts if part))


def text_of(value: Any, key: str) -> str:
    """The string under a key, or an empty one for anything else."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def flat(text: str, limit: int = LINE) -> str:
    """The text on one line of at most `limit` characters, the ellipsis included."""
    line = " ".join(text[: limit * 4].split())
    line = line if len(line) <= limit and len(text) <= limit * 4 else f"{line[: limit - 1]}…"
    return line if line.isascii() else one_encoding(line)


def one_encoding(text: str) -> str:
    """The text with unpaired surrogates as U+FFFD, so that it can be encoded anywhere."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def short_path(path: str, folder: str) -> str:
    """The path as seen from the working folder."""
    inside = folder and path.startswith(folder.rstrip("/") + "/")
    return path[len(folder.rstrip("/")) + 1 :] if inside else path


def _change(given: dict[str, Any]) -> str:
    """How much an edit or a written file adds and removes, counted from the call itself."""
    edits = given.get("edits") if isinstance(given.get("edits"), list) else [given]
    added = removed = 0
    for edit in edits or ():
        if not isinstance(edit, dict):
            continue
        old = edit.get("old_string", edit.get("oldText"))
        new = edit.get("new_string", edit.get("newText"))
        if isinstance(old, str) and isinstance(new, str):
            more, fewer = _line_counts(old, new)
            added, removed = added + more, removed + fewer
    if added or removed:
        return counts_line(added, removed)
    content = given.get("content")
    if isinstance(content, str):
        return f"+{len(content.splitlines())}"
    first, many = given.get("offset"), given.get("limit")
    if isinstance(many, int):
        start = first if isinstance(first, int) else 1
        return f"lines {start}–{start + many - 1}"
    return ""


def _line_counts(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed, common lines at both ends left out: exact enough for a summary, and linear."""
    before, after = old.splitlines(), new.splitlines()
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return len(after) - start - end, len(before) - start - end

"""A tool call as a page shows it: one line that unfolds to a diff, a command's output or plain text. Pure."""

import json
import re
from dataclasses import dataclass
from typing import Any

from console.diffs import ROWS, Diff, diff, patch
from console.json_text import storable
from console.shown import THIN, thin
from lineage.transcripts.tools import call_line, flat, joined, seconds_text

# What of an output stands in the page unasked: enough to judge it, and fifty of them still open at once.
OUTPUT_LINES = 40
OUTPUT_CHARACTERS = 6_000
# "Show all" shows at most this much: a browser lays out some megabytes of text without a pause.
WHOLE_CHARACTERS = 2 * 1024 * 1024
WHOLE_ROWS = 20_000

ICONS = {"edit": "edit", "write": "edit", "read": "file", "command": "term", "search": "search", "agent": "fork"}


@dataclass(frozen=True, kw_only=True)
class Output:
    """The part of a text that is shown, its end first to go: what is left out is said."""

    text: str
    lines: int
    characters: int
    left_lines: int
    left_characters: int

    @property
    def cut(self) -> bool:
        return self.left_characters > 0


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call with its result, if there is one yet."""

    id: str
    name: str
    icon: str
    line: str
    said: str  # of the result: "exit 0", "64 lines", "refused: …"
    state: str  # "done", "failed", "open" (no result yet)
    diff: Diff | None
    given: Output | None  # what the call was given, where neither the line nor the diff shows it
    output: Output | None
    result_seq: int | None
    plus: int | None = None
    minus: int | None = None
    pictures: tuple[str, ...] = ()


# The result of a call: its block, what `data` tells of it, the entry that brought it, its pictures.
Told = tuple[dict[str, Any], dict[str, Any], int, tuple[str, ...]]


def call_of(block: dict[str, Any], note: dict[str, Any], told: Told | None, *, whole: bool = False) -> Call:
    """The call of a `tool_use` block, with its result where there is one."""
    result, facts, seq, pictures = told or ({}, {}, None, ())
    name = str(block.get("name") or facts.get("name") or "tool")
    given = block.get("input")
    inputs = given if isinstance(given, dict) else {}
    kind = kind_of(name, inputs)
    text = _text_of(result.get("content"))
    failed = bool(result.get("is_error") or facts.get("error"))
    change = _patch_of(facts, whole=whole) or diff_of(inputs, whole=whole)
    keeps_output = change is None or failed
    line = storable(str(note.get("line") or call_line(name, inputs)))
    return Call(
        id=str(block.get("id")),
        name=storable(name)[:80],
        icon=ICONS.get(kind, "play"),
        line=_COUNTS.sub("", line) if change else line,
        said=_said(facts, text, failed=failed, told=told is not None, change=change),
        state="failed" if failed else "open" if told is None else "done",
        diff=change,
        given=None if change else given_of(kind, given, whole=whole),
        output=output_of(text, whole=whole) if text and keeps_output else None,
        result_seq=seq,
        plus=change.added if change and not failed else None,
        minus=change.removed if change and not failed else None,
        pictures=pictures,
    )


def _said(facts: dict[str, Any], text: str, *, failed: bool, told: bool, change: Diff | None) -> str:
    """What the line tells of the result. A refusal stands there in its own words."""
    if not told:
        return ""
    seconds = facts.get("seconds")
    took = seconds_text(seconds) if isinstance(seconds, int | float) and seconds >= 0.1 else ""
    if change is not None and not failed:
        return took
    line = str(facts.get("line") or "")
    if took and line.endswith(took):
        took = ""  # the transcript's own line tells it
    if failed:
        return storable(joined(line or flat(text.strip().partition("\n")[0], 120) or "failed", took))
    return storable(joined(line or lines_said(text), took))


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def _patch_of(facts: dict[str, Any], *, whole: bool) -> Diff | None:
    """The diff with the file's own line numbers, where the result tells its hunks."""
    hunks = facts.get("patch")
    if not isinstance(hunks, list) or not hunks:
        return None
    found = patch(hunks)
    rows = WHOLE_ROWS if whole else ROWS
    left = max(0, len(found.rows) - rows)
    return Diff(rows=found.rows[:rows], added=found.added, removed=found.removed, left_out=left)


def output_of(text: str, *, whole: bool = False) -> Output:
    """The beginning of a text. Escape sequences of terminals are left out."""
    clean = without_escapes(storable(text)).replace("\r\n", "\n")
    lines = clean.count("\n") + 1 if clean else 0
    shown = clean[: WHOLE_CHARACTERS if whole else OUTPUT_CHARACTERS]
    if not whole:
        shown = "\n".join(shown.split("\n")[:OUTPUT_LINES])
    left = len(clean) - len(shown)
    left_lines = lines - (shown.count("\n") + 1) if left else 0
    return Output(text=shown, lines=lines, characters=len(clean), left_lines=left_lines, left_characters=left)


def without_escapes(text: str) -> str:
    """Text of a terminal without its colours and titles."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def diff_of(given: dict[str, Any], *, whole: bool = False) -> Diff | None:
    """The diff that a call asks for, by the names that known tools give to old and new text."""
    rows = WHOLE_ROWS if whole else ROWS
    pairs = _pairs(given)
    if not pairs:
        return None
    parts = [diff(storable(old), storable(new), rows=rows) for old, new in pairs]
    if len(parts) == 1:
        return parts[0]
    found = [row for part in parts for row in part.rows]
    left = sum(part.left_out for part in parts) + max(0, len(found) - rows)
    return Diff(
        rows=tuple(found[:rows]),
        added=sum(part.added for part in parts),
        removed=sum(part.removed for part in parts),
        left_out=left,
    )


def kind_of(name: str, given: dict[str, Any]) -> str:
    """Which sort of tool it is, by its own name and by what it is given."""
    plain = name.lower()
    if _pairs(given) or "patch" in plain or "edit" in plain:
        return "edit"
    if "write" in plain and "content" in given:
        return "write"
    if any(key in given for key in ("command", "cmd")) or plain in {"bash", "shell"}:
        return "command"
    if plain in {"task", "agent", "spawn"}:
        return "agent"
    if any(word in plain for word in ("grep", "search", "glob", "find")):
        return "search"
    return "read" if "read" in plain else ""


def given_of(kind: str, given: Any, *, whole: bool = False) -> Output | None:
    """What the call was given, where its line cannot show it."""
    if not isinstance(given, dict):
        return output_of(str(given), whole=whole) if given else None
    if kind == "write" and isinstance(given.get("content"), str):
        return output_of(given["content"], whole=whole)
    if kind == "edit" and isinstance(given.get("input") or given.get("patch"), str):
        return output_of(given.get("input") or given["patch"], whole=whole)
    if kind == "command":
        command = given.get("command") or given.get("cmd")
        text = command if isinstance(command, str) else " ".join(map(str, command or ()))
        return output_of(text, whole=whole) if "\n" in text or len(text) > 80 else None
    if not given or (len(given) == 1 and kind):
        return None
    return output_of(json.dumps(given, ensure_ascii=False, indent=2), whole=whole)


def lines_said(text: str) -> str:
    """How long a result is: "64 lines", "1 line"."""
    count = len(text.splitlines())
    return f"{thin(count)}{THIN}{'line' if count == 1 else 'lines'}" if count else "no output"


_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_COUNTS = re.compile(r" \+\d+ −\d+$")  # the diff beside it says so in colour
_OLD = ("old_string", "oldText", "old_text", "old")
_NEW = ("new_string", "newText", "new_text", "new")


def _pairs(given: dict[str, Any]) -> list[tuple[str, str]]:
    edits = given.get("edits")
    found = [_pair(edit) for edit in edits] if isinstance(edits, list) else [_pair(given)]
    return [pair for pair in found if pair is not None]


def _pair(edit: Any) -> tuple[str, str] | None:
    if not isinstance(edit, dict):
        return None
    old = next((edit[key] for key in _OLD if isinstance(edit.get(key), str)), None)
    new = next((edit[key] for key in _NEW if isinstance(edit.get(key), str)), None)
    return (old, new) if old is not None and new is not None else None

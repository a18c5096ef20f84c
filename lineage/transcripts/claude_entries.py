"""What one line of a Claude Code file shows and says: kind, messages, data (L2). Pure; where it goes is decided elsewhere."""

import re
from collections.abc import Callable
from typing import Any

from lineage.transcripts.blocks import blocks_of, image_notes, known_blocks, text_of_blocks
from lineage.transcripts.claude_lines import Sort, content_of, message_of, name_in, tagged, typed_text
from lineage.transcripts.claude_results import result_note
from lineage.transcripts.content import Call, Content
from lineage.transcripts.plan import PlannedUsage
from lineage.transcripts.tools import call_line, flat, seconds_text, text_of

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# Reminders that the program repeats every few turns. They would bury what happened; the raw lines keep them.
_REPEATED = frozenset(
    {"todo_reminder", "task_reminder", "todo", "token_usage", "output_style", "critical_system_reminder"}
)
_NOTHING = ("", "{}")  # what a hook prints that has nothing to say


def entry_content(
    sort: Sort, line: dict[str, Any], *, folder: str, call_of: Callable[[str], Call | None], unnamed: str = ""
) -> Content | None:
    """What the line shows, or none when there is nothing to see or say in it. `unnamed` is the call of results that name none."""
    match sort:
        case Sort.ASSISTANT:
            return _assistant(line, folder)
        case Sort.RESULT:
            return _results(line, call_of, unnamed)
        case Sort.PROMPT | Sort.INTERRUPTED | Sort.INJECTED | Sort.SUMMARY:
            return _user(sort, line)
        case Sort.QUIET:
            return _quiet(line)
    return None


def _assistant(line: dict[str, Any], folder: str) -> Content | None:
    message = message_of(line)
    uuid = name_in(line, "uuid")
    kept, unknown = known_blocks(blocks_of(message.get("content")))
    if line.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
        text = text_of_blocks(kept)
        return Content(kind="claude.error", data={"text": text}) if text else None
    blocks: list[dict[str, Any]] = []
    asked: list[tuple[str, str, dict[str, Any]]] = []
    notes: list[dict[str, Any]] = []
    for number, block in enumerate(kept):
        if block.get("type") != "tool_use":
            blocks.append(block)
            continue
        name = name_in(block, "name") or "tool"
        call = name_in(block, "id") or f"none-{uuid}-{number}"
        told = block.get("input")
        given: dict[str, Any] = told if isinstance(told, dict) else {}
        blocks.append({"type": "tool_use", "id": call, "name": name, "input": given})
        asked.append((call, name, given))
        notes.append({"id": call, "line": call_line(name, given, folder)})
    if not blocks and not unknown:
        return None
    data: dict[str, Any] = {}
    if notes:
        data["calls"] = notes
    if unknown:
        data["unknown"] = unknown
    if line.get("isAbortedMidStream") is True:
        data["aborted"] = True
    images = image_notes(blocks)
    if images:
        data["images"] = images
    return Content(
        kind="assistant",
        model=[{"role": "assistant", "content": blocks}] if blocks else None,
        data=data,
        message_id=name_in(message, "id"),
        model_name=name_in(message, "model"),
        usage=usage_of(message),
        asked=tuple(asked),
    )


def usage_of(message: dict[str, Any]) -> PlannedUsage | None:
    """The tokens of an answer so far; lines of one message repeat it, early ones with too few output tokens."""
    usage = message.get("usage")
    name = name_in(message, "id")
    if not isinstance(usage, dict) or not name:
        return None

    def count(key: str) -> int:
        value = usage.get(key)
        return value if isinstance(value, int) and 0 <= value < 2**53 else 0

    return PlannedUsage(
        message_id=name,
        model=name_in(message, "model"),
        input_tokens=count("input_tokens"),
        output_tokens=count("output_tokens"),
        cache_read_tokens=count("cache_read_input_tokens"),
        cache_write_tokens=count("cache_creation_input_tokens"),
    )


def _results(line: dict[str, Any], call_of: Callable[[str], Call | None], unnamed: str) -> Content | None:
    blocks: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    answered: list[str] = []
    kept, unknown = known_blocks(blocks_of(content_of(line)))
    single = sum(block.get("type") == "tool_result" for block in kept) == 1
    for block in kept:
        if block.get("type") != "tool_result":
            blocks.append(block)
            continue
        call = name_in(block, "tool_use_id") or unnamed
        if not call:
            unknown.append("tool_result without a call")
            continue
        content = block.get("content")
        if isinstance(content, list):
            content, odd = known_blocks(blocks_of(content))
            unknown += odd
        result = {"type": "tool_result", "tool_use_id": call, "content": content if content is not None else ""}
        if block.get("is_error") is True:
            result["is_error"] = True
        blocks.append(result)
        answered.append(call)
        notes.append(result_note(result, line.get("toolUseResult") if single else None, line, call_of(call)))
    data: dict[str, Any] = {"results": notes} if notes else {}
    if unknown:
        data["unknown"] = unknown
    images = image_notes(blocks)
    if images:
        data["images"] = images
    if not blocks and not data:
        return None
    model = [{"role": "user", "content": blocks}] if blocks else None
    return Content(kind="tool_result", model=model, data=data, answered=tuple(answered))


def _user(sort: Sort, line: dict[str, Any]) -> Content | None:
    content = content_of(line)
    model: list[dict[str, Any]] | None
    if isinstance(content, str):
        model = [{"role": "user", "content": content}] if content.strip() else None
        blocks: list[dict[str, Any]] = []
        unknown: list[str] = []
    else:
        blocks, unknown = known_blocks(blocks_of(content))
        model = [{"role": "user", "content": blocks}] if blocks else None
    if model is None and not unknown:
        return None
    data: dict[str, Any] = {}
    images = image_notes(blocks)
    if images:
        data["images"] = images
    if unknown:
        data["unknown"] = unknown
    text = text_of_blocks(content)
    if sort == Sort.PROMPT:
        return Content(kind="user", model=model, data=data, prompt=typed_text(content) or "(image)")
    if sort == Sort.SUMMARY:
        return Content(kind="compaction", model=model, data=data)
    if sort == Sort.INTERRUPTED:
        return Content(kind="claude.interrupted", model=model, data=data | {"text": flat(text)})
    kind, shown = injected_note(text)
    return Content(kind=kind, model=model, data=data | shown)


def injected_note(text: str) -> tuple[str, dict[str, Any]]:
    """(kind, data) of text that the program put into the conversation: a command, its output, or a note for the model."""
    parts = tagged(text)
    if "command-name" in parts:
        return "claude.command", {"command": f"{parts['command-name']} {parts.get('command-args', '')}".strip()}
    if "bash-input" in parts:
        return "claude.command", {"command": f"! {parts['bash-input']}"}
    for tag in ("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"):
        if tag in parts:
            printed = "\n".join(value for key, value in parts.items() if key.endswith(("stdout", "stderr")) and value)
            return "claude.output", {"text": without_ansi(printed)}
    return "claude.meta", {"line": flat(without_ansi(re.sub(r"</?[a-z_-]+>", " ", text)))}


def without_ansi(text: str) -> str:
    """The text without terminal colours."""
    return _ANSI.sub("", text)


def _quiet(line: dict[str, Any]) -> Content | None:
    kind = line.get("type")
    if kind == "system":
        return _system(line)
    if kind == "attachment":
        return _attachment(line)
    if kind == "user":
        return None
    return Content(kind="claude.unknown", data={"type": str(kind)[:80], "keys": sorted(map(str, line))[:40]})


def _system(line: dict[str, Any]) -> Content | None:
    subtype = name_in(line, "subtype")
    text = text_of(line, "content")
    if subtype == "turn_duration":
        spent = line.get("durationMs")
        seconds = spent / 1000 if isinstance(spent, int | float) else None
        return Content(
            kind="turn_end", data={} if seconds is None else {"seconds": seconds, "line": seconds_text(seconds)}
        )
    if subtype == "api_error":
        return Content(kind="claude.error", data=error_note(line))
    if subtype == "local_command":
        note, data = injected_note(text)
        return Content(kind=note, data=data)
    if subtype == "stop_hook_summary":
        errors = (
            [flat(str(error)) for error in line.get("hookErrors") or ()]
            if isinstance(line.get("hookErrors"), list)
            else []
        )
        if not errors and line.get("preventedContinuation") is not True:
            return None
        return Content(
            kind="claude.system", data={"subtype": subtype, "text": "\n".join(errors) or text_of(line, "stopReason")}
        )
    if not text.strip():
        return None
    return Content(kind="claude.system", data={"subtype": subtype, "text": without_ansi(text)})


def error_note(line: dict[str, Any]) -> dict[str, Any]:
    """`{text, status?, attempt?, of?}` of a failed request to the model."""
    error = line.get("error") if isinstance(line.get("error"), dict) else {}
    assert isinstance(error, dict)
    inner = error.get("error") if isinstance(error.get("error"), dict) else error.get("cause")
    inner = inner if isinstance(inner, dict) else {}
    what = next(
        (text_of(inner, key) for key in ("message", "type", "code") if text_of(inner, key)), text_of(error, "message")
    )
    note: dict[str, Any] = {}
    status = error.get("status")
    if isinstance(status, int):
        note["status"] = status
    for key, name in (("retryAttempt", "attempt"), ("maxRetries", "of")):
        if isinstance(line.get(key), int):
            note[name] = line[key]
    tries = f", try {note['attempt']} of {note['of']}" if {"attempt", "of"} <= note.keys() else ""
    number = f" {status}" if isinstance(status, int) else ""
    return {"text": f"The model did not answer:{number} {what or 'no reason given'}{tries}"} | note


def _attachment(line: dict[str, Any]) -> Content | None:
    found = line.get("attachment")
    note: dict[str, Any] = found if isinstance(found, dict) else {}
    kind = name_in(note, "type")
    if kind == "queued_command":
        prompt = note.get("prompt")
        text = typed_text(prompt)
        if text:
            model = [{"role": "user", "content": prompt}]
            return Content(kind="user", model=model, data={"queued": True}, prompt=text)
        printed = text_of_blocks(prompt)
        return Content(kind="claude.meta", model=[{"role": "user", "content": printed}]) if printed.strip() else None
    if kind in _REPEATED:
        return None
    if kind.startswith("hook_"):
        return _hook(note, kind)
    name = next(
        (name_in(note, key) for key in ("displayPath", "filename", "path", "planFilePath") if name_in(note, key)), ""
    )
    text = name or next(
        (value for value in note.values() if isinstance(value, str) and value != kind and value.strip()), ""
    )
    return Content(kind="claude.attachment", data={"type": kind or "unknown", "line": flat(text)})


def _hook(note: dict[str, Any], kind: str) -> Content | None:
    """Hooks that have something to say, or that failed; the others run hundreds of times."""
    printed = [
        text_of(note, key).strip() for key in ("content", "stdout", "stderr", "blockingError", "error", "message")
    ]
    said = [text for text in printed if text not in _NOTHING]
    code = note.get("exitCode")
    if not said and (code in (0, None)) and kind in ("hook_success", "hook_cancelled"):
        return None
    data: dict[str, Any] = {"type": kind, "line": name_in(note, "hookName"), "text": without_ansi("\n".join(said))}
    if isinstance(code, int):
        data["exit"] = code
    return Content(kind="claude.attachment", data=data)

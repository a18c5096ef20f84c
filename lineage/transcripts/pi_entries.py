"""What one line of a pi session file shows and says: kind, messages, data (L2). Pure."""

import re
from typing import Any

from lineage.transcripts.blocks import image_notes, text_of_blocks
from lineage.transcripts.claude_lines import name_in, parsed_time
from lineage.transcripts.content import Call, Content
from lineage.transcripts.plan import PlannedUsage, RunState
from lineage.transcripts.tools import (
    call_line,
    counts_line,
    exit_code,
    flat,
    joined,
    patch_counts,
    seconds_text,
    text_of,
)

_DIFF_LINE = re.compile(r"(?P<sign>[+\- ]) *(?P<number>\d+) ?(?P<text>.*)", re.S)
_BAD_ID = re.compile(r"[^A-Za-z0-9_-]")
_SIGNS = "anthropic-messages"  # the only provider whose signature of its thinking others can check again
_OUTCOMES = {"error": "failed", "aborted": "aborted"}


def call_id(value: dict[str, Any], key: str) -> str:
    """A call's id, in the characters that the Messages API takes."""
    return _BAD_ID.sub("_", name_in(value, key))


def entry_content(line: dict[str, Any], *, folder: str, calls: dict[str, Call]) -> Content | None:
    """What the line shows, or none when there is nothing to see or say in it."""
    kind = line.get("type")
    if kind == "message":
        message = line.get("message")
        return _message(line, message, folder, calls) if isinstance(message, dict) else None
    if kind == "compaction":
        summary = text_of(line, "summary")
        data: dict[str, Any] = {"trigger": "hook" if line.get("fromHook") is True else "pi"}
        if isinstance(line.get("tokensBefore"), int):
            data["before"] = line["tokensBefore"]
        model = [{"role": "user", "content": summary}] if summary.strip() else None
        return Content(kind="compaction", model=model, data=data, usage=usage_of(line, line))
    if kind == "branch_summary":
        summary = text_of(line, "summary")
        return Content(kind="pi.branch_summary", model=_said(summary), data={"line": flat(summary)})
    if kind == "custom_message":
        blocks = blocks_from(line.get("content"))
        data = {"type": name_in(line, "customType"), "line": flat(text_of_blocks(blocks))}
        if line.get("display") is not True:
            data["hidden"] = True
        return Content(kind="pi.note", model=[{"role": "user", "content": blocks}] if blocks else None, data=data)
    if kind == "usage":
        return Content(
            kind="pi.usage", data={"line": name_in(line, "kind").replace("_", " ")}, usage=usage_of(line, line)
        )
    if kind == "context_edit":
        done = "left out of the context" if line.get("replacement") is None else "replaced in the context"
        return Content(kind="pi.context_edit", data={"line": f"An earlier entry is {done}."})
    return Content(kind="pi.unknown", data={"type": str(kind)[:80], "keys": sorted(map(str, line))[:40]})


def usage_of(line: dict[str, Any], message: dict[str, Any]) -> PlannedUsage | None:
    """Tokens and dollars of an answer; pi writes one line for each."""
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None

    def count(key: str) -> int:
        value = usage.get(key)
        return value if isinstance(value, int) and 0 <= value < 2**53 else 0

    cost = usage.get("cost")
    total = cost.get("total") if isinstance(cost, dict) else None
    micros = round(total * 1_000_000) if isinstance(total, int | float) and 0 < total < 2**40 else None
    counts = [count(key) for key in ("input", "output", "cacheRead", "cacheWrite")]
    if not any(counts):
        return None
    return PlannedUsage(
        message_id=name_in(line, "id") or name_in(line, "timestamp"),
        model=name_in(message, "model"),
        input_tokens=counts[0],
        output_tokens=counts[1],
        cache_read_tokens=counts[2],
        cache_write_tokens=counts[3],
        cost_micros=micros,
    )


def state_after(line: dict[str, Any]) -> tuple[RunState, str] | None:
    """(state, why) after this line by pi's own marks (L8), or none when it says nothing about it."""
    message = line.get("message")
    if line.get("type") != "message" or not isinstance(message, dict):
        return None
    match message.get("role"):
        case "user" | "toolResult":
            return RunState.RUNNING, ""
        case "assistant":
            match message.get("stopReason"):
                case "error":
                    return RunState.FAILED, flat(text_of(message, "errorMessage") or "the model did not answer")
                case "aborted":
                    return RunState.IDLE, "interrupted"
                case "stop" | "length":
                    return RunState.IDLE, ""
            return RunState.RUNNING, ""
    return None


def blocks_from(content: Any) -> list[dict[str, Any]]:
    """pi's content as blocks of the Messages shape; what that shape does not know is left out."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    blocks: list[dict[str, Any]] = []
    for block in content if isinstance(content, list) else ():
        match block:
            case {"type": "text", "text": str(text)} if text.strip():
                blocks.append({"type": "text", "text": text})
            case {"type": "image", "data": str(data), "mimeType": str(media)}:
                source = {"type": "base64", "media_type": media, "data": data}
                blocks.append({"type": "image", "source": source})
    return blocks


def _said(text: str) -> list[dict[str, Any]] | None:
    return [{"role": "user", "content": text}] if text.strip() else None


def _message(line: dict[str, Any], message: dict[str, Any], folder: str, calls: dict[str, Call]) -> Content | None:
    role = message.get("role")
    if role == "user":
        blocks = blocks_from(message.get("content"))
        data: dict[str, Any] = {"images": image_notes(blocks)} if image_notes(blocks) else {}
        model = [{"role": "user", "content": blocks}] if blocks else None
        text = text_of_blocks(blocks)
        return Content(kind="user", model=model, data=data, prompt=text or "(image)") if model else None
    if role == "assistant":
        return _assistant(line, message, folder)
    if role == "toolResult":
        return _result(line, message, calls)
    if role == "bashExecution":
        return _command(message)
    text = text_of_blocks(blocks_from(message.get("content")))
    sections = message.get("sections")
    if role == "system":
        names = ", ".join(map(str, sections)) if isinstance(sections, dict) else ""
        return Content(kind="system", data={"line": flat(text or names), "text": text})
    model = _said(text)
    return Content(kind="pi.note", model=model, data={"type": str(role)[:80], "line": flat(text)}) if model else None


def _assistant(line: dict[str, Any], message: dict[str, Any], folder: str) -> Content | None:
    blocks: list[dict[str, Any]] = []
    asked: list[tuple[str, str, dict[str, Any]]] = []
    notes: list[dict[str, Any]] = []
    unknown: list[str] = []
    content = message.get("content")
    for block in content if isinstance(content, list) else blocks_from(content):
        match block:
            case {"type": "text", "text": str(text)}:
                if text.strip():
                    blocks.append({"type": "text", "text": text})
            case {"type": "thinking", "thinking": str(text)}:
                signature = name_in(block, "thinkingSignature") if message.get("api") == _SIGNS else ""
                blocks.append({"type": "thinking", "thinking": text, "signature": signature})
            case {"type": "toolCall"}:
                call, name = call_id(block, "id"), name_in(block, "name") or "tool"
                told = block.get("arguments")
                given: dict[str, Any] = told if isinstance(told, dict) else {}
                blocks.append({"type": "tool_use", "id": call, "name": name, "input": given})
                asked.append((call, name, given))
                notes.append({"id": call, "line": call_line(name, given, folder)})
            case {"type": kind}:
                unknown.append(str(kind)[:80])
    data: dict[str, Any] = {"calls": notes} if notes else {}
    if unknown:
        data["unknown"] = unknown
    stop = str(message.get("stopReason"))
    outcome = _OUTCOMES.get(stop, "")
    if outcome:
        data[outcome] = True
        data["text"] = text_of(message, "errorMessage")
    if not blocks and not data:
        return None
    return Content(
        kind="assistant",
        model=[{"role": "assistant", "content": blocks}] if blocks else None,
        data=data,
        outcome=outcome,
        model_name=name_in(message, "model"),
        usage=usage_of(line, message),
        asked=tuple(asked),
    )


def _result(line: dict[str, Any], message: dict[str, Any], calls: dict[str, Call]) -> Content:
    call, name = call_id(message, "toolCallId"), name_in(message, "toolName")
    blocks = blocks_from(message.get("content"))
    text = text_of_blocks(blocks)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": blocks}
    note: dict[str, Any] = {"id": call, "name": name}
    failed = message.get("isError") is True
    if failed:
        block["is_error"] = note["error"] = True
    parts: list[str] = []
    if name == "bash":
        code = exit_code(text) if failed else 0
        if code is not None:
            note["exit"] = code
            parts.append(f"exit {code}")
    patch = patch_of(text_of(message.get("details"), "diff"))
    if patch:
        note["patch"] = patch
        note["added"], note["removed"] = patch_counts(patch)
        parts.append(counts_line(note["added"], note["removed"]))
    if failed and not parts:
        parts.append(text.strip().partition("\n")[0])
    begun, ended = calls.get(call), parsed_time(line.get("timestamp"))
    if begun is not None and begun.time is not None and ended is not None and ended >= begun.time:
        note["seconds"] = round((ended - begun.time).total_seconds(), 1)
        if note["seconds"] >= 1 or name == "bash":
            parts.append(seconds_text(note["seconds"]))
    note["line"] = joined(*parts) or flat(text.strip().partition("\n")[0], 80)
    data: dict[str, Any] = {"results": [note]}
    if image_notes([block]):
        data["images"] = image_notes([block])
    return Content(kind="tool_result", model=[{"role": "user", "content": [block]}], data=data, answered=(call,))


def _command(message: dict[str, Any]) -> Content:
    """A command that the person ran in between; the model reads what it printed."""
    command, output = text_of(message, "command"), text_of(message, "output")
    data: dict[str, Any] = {"command": f"! {command}", "text": output}
    if isinstance(message.get("exitCode"), int):
        data["exit"] = message["exitCode"]
    if message.get("truncated") is True:
        data["truncated"] = True
    hidden = message.get("excludeFromContext") is True
    return Content(kind="pi.command", model=None if hidden else _said(f"Ran `{command}`:\n\n{output}"), data=data)


def patch_of(diff: str) -> list[dict[str, Any]]:
    """Hunks of pi's diffs, whose lines are a sign, a number and the text: `+ 12 new`, `- 12 old`, `  13 same`."""
    hunks: list[dict[str, Any]] = []
    lines: list[str] = []
    for raw in diff.split("\n"):
        found = _DIFF_LINE.fullmatch(raw)
        if found is None:
            lines = []
            continue
        if not lines:
            number = int(found["number"])
            hunks.append({"oldStart": number, "newStart": number, "lines": lines})
        lines.append(found["sign"] + found["text"])
    for hunk in hunks:
        hunk["oldLines"] = sum(not line.startswith("+") for line in hunk["lines"])
        hunk["newLines"] = sum(not line.startswith("-") for line in hunk["lines"])
    return hunks

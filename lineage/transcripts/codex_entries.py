"""What one line of a Codex rollout shows and says: kind, messages, data (L2). Pure.

Every visible message is there twice, as an item and as an event; items are entries, events tell of turns, tokens and facts.
"""

import json
import re
from typing import Any

from lineage.transcripts.blocks import image_notes, text_of_blocks
from lineage.transcripts.claude_lines import name_in
from lineage.transcripts.codex_lines import call_id, is_injected
from lineage.transcripts.content import Call, Content
from lineage.transcripts.tools import (
    call_line,
    counts_line,
    exit_code,
    flat,
    joined,
    patch_counts,
    seconds_text,
    short_path,
    text_of,
)  # fmt: skip

_DATA_URL = re.compile(r"data:(?P<media>image/[a-z0-9.+-]+);base64,(?P<data>.+)", re.S)
_WALL_TIME = re.compile(r"Wall time: ([0-9.]+) seconds")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PATCH_FILE = re.compile(r"\*\*\* (?:Update|Add|Delete) File: (.+)")
_SHELLS = frozenset({"shell", "exec_command", "local_shell", "write_stdin", "shell_command"})
_SKIPPED = frozenset({"ghost_snapshot", "compaction", "context_compaction"})


def item_content(item: dict[str, Any], *, folder: str, calls: dict[str, Call], facts: dict[str, Any]) -> Content | None:
    """What a `response_item` shows, or none. `facts` are those that events told of a call before its result came."""
    match item.get("type"):
        case "message":
            return _message(item)
        case "reasoning":
            return _reasoning(item)
        case "function_call" | "custom_tool_call" | "tool_search_call" | "local_shell_call":
            return _call(item, folder)
        case "function_call_output" | "custom_tool_call_output" | "tool_search_output":
            return _result(item, calls, facts, folder)
        case "agent_message":
            text = text_of_blocks(blocks_from(item.get("content")))
            who = f"{name_in(item, 'author')} to {name_in(item, 'recipient')}"
            return (
                Content(kind="codex.message", model=_said(text), data={"line": flat(f"{who}: {text}")})
                if text
                else None
            )
        case "web_search_call":
            action = item.get("action")
            query = next((text_of(action, key) for key in ("query", "url", "pattern") if text_of(action, key)), "")
            return Content(kind="codex.search", data={"line": flat(query)})
        case "image_generation_call":
            return Content(kind="codex.image", data={"line": flat(text_of(item, "revised_prompt"))})
        case kind if kind in _SKIPPED:
            return None
        case kind:
            return Content(kind="codex.unknown", data={"type": str(kind)[:80], "keys": sorted(map(str, item))[:40]})


def event_content(event: dict[str, Any]) -> Content | None:
    """What an `event_msg` shows: only what no item shows."""
    match event.get("type"):
        case "task_complete" | "turn_complete":
            return _turn_end(event)
        case "turn_aborted":
            reason = name_in(event, "reason") or "interrupted"
            return Content(kind="codex.interrupted", data={"text": f"The turn was {reason}."})
        case "error":
            return Content(kind="codex.error", data={"text": text_of(event, "message")})
        case "entered_review_mode":
            return Content(
                kind="codex.review", data={"line": flat(text_of(event, "user_facing_hint") or "a review began")}
            )
        case "exited_review_mode":
            return _review(event)
        case "thread_rolled_back":
            turns = event.get("num_turns")
            return Content(kind="codex.rolled_back", data={"turns": turns if isinstance(turns, int) else 1})
    return None


def compaction_content(payload: dict[str, Any]) -> Content:
    """The history that takes the place of all before it, or the summary alone."""
    history = payload.get("replacement_history")
    messages: list[dict[str, Any]] = []
    for item in history if isinstance(history, list) else ():
        role = item.get("role") if isinstance(item, dict) else None
        blocks = blocks_from(item.get("content")) if isinstance(item, dict) else []
        if role in ("user", "assistant") and blocks:
            messages.append({"role": role, "content": blocks})
    text = text_of(payload, "message")
    data: dict[str, Any] = {"trigger": "codex"}
    if isinstance(payload.get("window_number"), int):
        data["window"] = payload["window_number"]
    return Content(kind="compaction", model=messages or _said(text), data=data)


def facts_of(event: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """(call id, facts) that an event tells of a tool call: duration, exit code, diff."""
    call = call_id(event)
    kind = event.get("type")
    if not call or kind not in (
        "exec_command_end",
        "mcp_tool_call_end",
        "patch_apply_end",
        "dynamic_tool_call_response",
    ):
        return None
    facts: dict[str, Any] = {}
    spent = event.get("duration")
    if isinstance(spent, dict) and isinstance(spent.get("secs"), int):
        nanos = spent.get("nanos")
        facts["seconds"] = round(spent["secs"] + (nanos if isinstance(nanos, int) else 0) / 1e9, 1)
    if isinstance(event.get("exit_code"), int):
        facts["exit"] = event["exit_code"]
    if event.get("success") is False:
        facts["error"] = True
    changes = event.get("changes")
    if isinstance(changes, dict):
        facts |= _patch(changes)
    return call, facts


def blocks_from(content: Any) -> list[dict[str, Any]]:
    """Codex's content as blocks of the Messages shape; images by data URL only."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    if isinstance(content, dict):
        inner = content.get("content")
        return blocks_from(inner if inner is not None else [content])
    blocks: list[dict[str, Any]] = []
    for block in content if isinstance(content, list) else ():
        match block:
            case {"type": "input_text" | "output_text" | "text" | "summary_text", "text": str(text)} if text.strip():
                blocks.append({"type": "text", "text": text})
            case {"type": "input_image", "image_url": str(url)}:
                found = _DATA_URL.fullmatch(url)
                if found:
                    source = {"type": "base64", "media_type": found["media"], "data": found["data"]}
                    blocks.append({"type": "image", "source": source})
    return blocks


def _said(text: str) -> list[dict[str, Any]] | None:
    return [{"role": "user", "content": text}] if text.strip() else None


def _message(item: dict[str, Any]) -> Content | None:
    blocks, role = blocks_from(item.get("content")), item.get("role")
    if not blocks:
        return None
    text = text_of_blocks(blocks)
    data: dict[str, Any] = {"images": image_notes(blocks)} if image_notes(blocks) else {}
    if role == "assistant":
        if name_in(item, "phase"):
            data["phase"] = name_in(item, "phase")
        blocks = [block for block in blocks if block["type"] == "text"]
        return (
            Content(kind="assistant", model=[{"role": "assistant", "content": blocks}], data=data) if blocks else None
        )
    if role in ("developer", "system"):
        return Content(kind="codex.meta", data={"line": flat(text), "text": text})
    typed = next((block["text"] for block in blocks if block["type"] == "text" and not is_injected(block["text"])), "")
    model = [{"role": "user", "content": blocks}]
    if typed or data:
        return Content(kind="user", model=model, data=data, prompt=typed or "(image)")
    return Content(kind="codex.meta", model=model, data={"line": flat(re.sub(r"</?[a-z_ ]+>", " ", text))})


def _reasoning(item: dict[str, Any]) -> Content | None:
    """Mostly encrypted; only the summary can be read."""
    text = "\n\n".join(text_of_blocks(blocks_from(item.get(key))) for key in ("summary", "content")).strip()
    if not text:
        return None
    block = {"type": "thinking", "thinking": text, "signature": ""}
    return Content(kind="assistant", model=[{"role": "assistant", "content": [block]}])


def _call(item: dict[str, Any], folder: str) -> Content:
    call = call_id(item) or call_id(item, "id")
    name = ".".join(part for part in (name_in(item, "namespace"), name_in(item, "name")) if part)
    given: dict[str, Any] = {}
    action = item.get("action")
    if item.get("type") == "local_shell_call":
        name = name or "local_shell"
        given = action if isinstance(action, dict) else {}
    elif item.get("type") == "tool_search_call":
        name = name or "tool_search"
    told = item.get("arguments", item.get("input"))
    if isinstance(told, dict):
        given = told
    elif isinstance(told, str):
        given = _arguments(told)
    patch = text_of(given, "input") if name == "apply_patch" else ""
    line = _patch_line(patch, folder) if patch else call_line(name, given, folder)
    block = {"type": "tool_use", "id": call, "name": name or "tool", "input": given}
    return Content(
        kind="assistant",
        model=[{"role": "assistant", "content": [block]}],
        data={"calls": [{"id": call, "line": line}]},
        asked=((call, name or "tool", given),),
    )


def _arguments(text: str) -> dict[str, Any]:
    """Arguments are JSON in a string; a custom tool's input is any text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {"input": text}
    return found if isinstance(found, dict) else {"input": text}


def _patch_line(patch: str, folder: str) -> str:
    """`cart.py +12 −3`, `cart.py and 2 more +20 −4`."""
    files = [short_path(path.strip(), folder) for path in _PATCH_FILE.findall(patch)]
    lines = patch.split("\n")
    added, removed = sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return flat(f"{files[0] if files else 'patch'}{more} {counts_line(added, removed)}")


def _result(item: dict[str, Any], calls: dict[str, Call], facts: dict[str, Any], folder: str) -> Content | None:
    call = call_id(item)
    if not call:
        return None
    output = item.get("output", item.get("tools"))
    told: dict[str, Any] = {}
    if isinstance(output, str) and output.startswith('{"output"'):
        found = _arguments(output)
        metadata = found.get("metadata")
        told = metadata if isinstance(metadata, dict) else {}
        output = found.get("output", output)
    blocks = blocks_from(output)
    if not blocks and output:
        blocks = [{"type": "text", "text": json.dumps(output, ensure_ascii=False)}]
    text = text_of_blocks(blocks)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": blocks}
    name = calls[call].name if call in calls else ""
    note: dict[str, Any] = {"id": call, "name": name} | facts
    code = facts.get("exit", told.get("exit_code", exit_code(text)))
    wall = _WALL_TIME.search(text[:2000])
    seconds = facts.get("seconds", told.get("duration_seconds", float(wall[1]) if wall else None))
    parts: list[str] = []
    if isinstance(code, int):
        note["exit"] = code
        parts.append(f"exit {code}")
        if code:
            note["error"] = True
    if note.get("error"):
        block["is_error"] = True
    if "patch" in note:
        parts.append(counts_line(note["added"], note["removed"]))
    if isinstance(seconds, int | float):
        note["seconds"] = round(float(seconds), 1)
        if note["seconds"] >= 1 or name in _SHELLS:
            parts.append(seconds_text(note["seconds"]))
    note["line"] = joined(*parts) or flat(text.strip().partition("\n")[0], 80)
    if "path" in note:
        note["path"] = short_path(note["path"], folder)
    data: dict[str, Any] = {"results": [note]}
    if image_notes([block]):
        data["images"] = image_notes([block])
    return Content(kind="tool_result", model=[{"role": "user", "content": [block]}], data=data, answered=(call,))


def _patch(changes: dict[str, Any]) -> dict[str, Any]:
    """`{patch, path, added, removed}` of the unified diffs of one applied patch."""
    hunks: list[dict[str, Any]] = []
    for path, change in changes.items():
        lines: list[str] | None = None
        for line in text_of(change, "unified_diff").split("\n"):
            found = _HUNK.match(line)
            if found:
                lines = []
                old, olds, new, news = (int(part) if part else 1 for part in found.groups())
                hunks.append(
                    {"oldStart": old, "oldLines": olds, "newStart": new, "newLines": news, "lines": lines, "path": path}
                )
            elif lines is not None and line[:1] in ("+", "-", " "):
                lines.append(line)
    if not hunks:
        return {"path": next(iter(changes), "")}
    added, removed = patch_counts(hunks)
    return {"patch": hunks, "path": next(iter(changes)), "added": added, "removed": removed}


def _turn_end(event: dict[str, Any]) -> Content:
    data: dict[str, Any] = {}
    spent, error = event.get("duration_ms"), event.get("error")
    if isinstance(spent, int | float) and spent > 0:
        data = {"seconds": round(spent / 1000, 1), "line": seconds_text(spent / 1000)}
    if isinstance(error, dict):
        data["text"] = text_of(error, "message") or "The turn failed."
        data["failed"] = True
    return Content(kind="turn_end", data=data)


def _review(event: dict[str, Any]) -> Content:
    output = event.get("review_output")
    found: dict[str, Any] = output if isinstance(output, dict) else {}
    findings = found.get("findings")
    titles = (
        [flat(text_of(one, "title")) for one in findings if isinstance(one, dict)] if isinstance(findings, list) else []
    )
    explained = text_of(found, "overall_explanation")
    text = "\n".join([explained, *(f"- {title}" for title in titles if title)]).strip()
    return Content(kind="codex.review", data={"line": flat(explained or "the review ended"), "text": text})

"""What a tool result tells people beside its text: a line, the diff, facts (exit code, files, answers). Pure.

`toolUseResult` lies next to the message; its shape depends on the tool, and on failure it is a bare string.
"""

from typing import Any

from lineage.transcripts.blocks import text_of_blocks
from lineage.transcripts.claude_lines import time_in
from lineage.transcripts.content import Call
from lineage.transcripts.tools import counts_line, exit_code, flat, joined, patch_counts, seconds_text, text_of

_SHELLS = frozenset({"bash", "powershell", "shell"})


def result_note(block: dict[str, Any], told: Any, line: dict[str, Any], call: Call | None) -> dict[str, Any]:
    """`{id, name, line, error?, seconds?, exit?, patch?, path?, agent?, answers?, …}` of one tool result."""
    name = call.name if call else ""
    text = text_of_blocks(block["content"])
    note: dict[str, Any] = {"id": block["tool_use_id"], "name": name}
    failed = block.get("is_error") is True or (isinstance(told, str) and told.startswith("Error"))
    if failed:
        note["error"] = True
    facts: dict[str, Any] = told if isinstance(told, dict) else {}
    seconds = _seconds(facts, line, call)
    if seconds is not None:
        note["seconds"] = seconds
    parts: list[str] = []
    if name.lower() in _SHELLS or "stdout" in facts:
        parts.append(_shell(facts, text, failed, note))
    elif isinstance(facts.get("structuredPatch"), list):
        parts.append(_patch(facts, note))
    elif isinstance(facts.get("file"), dict):
        parts.append(_read(facts["file"]))
    elif isinstance(facts.get("numFiles"), int):
        parts.append(f"{facts['numFiles']} file{'' if facts['numFiles'] == 1 else 's'}")
    elif isinstance(facts.get("agentId"), str):
        parts.append(_agent(facts, note))
    elif isinstance(facts.get("answers"), dict):
        note["answers"] = {str(k)[:500]: str(v)[:2000] for k, v in list(facts["answers"].items())[:20]}
        parts.append(" / ".join(str(v) for v in facts["answers"].values()))
    elif isinstance(facts.get("code"), int) and isinstance(facts.get("bytes"), int):
        parts.append(f"{facts['code']} · {facts['bytes']} bytes")
    if failed and not any(parts):
        parts.append(text.removeprefix("Error: ").strip().partition("\n")[0])
    if seconds is not None and (seconds >= 1 or name.lower() in _SHELLS):
        parts.append(seconds_text(seconds))
    note["line"] = joined(*parts) or flat(text.strip().partition("\n")[0], 80)
    return note


def _seconds(facts: dict[str, Any], line: dict[str, Any], call: Call | None) -> float | None:
    for key in ("durationMs", "totalDurationMs"):
        spent = facts.get(key)
        if isinstance(spent, int | float) and spent >= 0:
            return round(spent / 1000, 1)
    ended = time_in(line)
    if ended is None or call is None or call.time is None:
        return None
    spent = (ended - call.time).total_seconds()
    return round(spent, 1) if spent >= 0 else None


def _shell(facts: dict[str, Any], text: str, failed: bool, note: dict[str, Any]) -> str:
    if text_of(facts, "backgroundTaskId"):
        note["background"] = facts["backgroundTaskId"][:80]
        return "in the background"
    if facts.get("interrupted") is True:
        note["interrupted"] = True
        return "interrupted"
    code = exit_code(text) if failed else 0
    if code is None:
        return text.removeprefix("Error: ").strip().partition("\n")[0]
    note["exit"] = code
    return f"exit {code}"


def _patch(facts: dict[str, Any], note: dict[str, Any]) -> str:
    patch = [hunk for hunk in facts["structuredPatch"] if isinstance(hunk, dict)]
    note["path"] = text_of(facts, "filePath")
    added, removed = patch_counts(patch)
    if patch:
        note["patch"] = patch
    elif text_of(facts, "content"):
        note["created"] = True
        added = len(facts["content"].splitlines())
    note["added"], note["removed"] = added, removed
    return counts_line(added, removed)


def _read(file: dict[str, Any]) -> str:
    first, many, total = file.get("startLine"), file.get("numLines"), file.get("totalLines")
    if not (isinstance(first, int) and isinstance(many, int) and isinstance(total, int)):
        return ""
    return (
        f"{total} line{'' if total == 1 else 's'}" if many >= total else f"lines {first}–{first + many - 1} of {total}"
    )


def _agent(facts: dict[str, Any], note: dict[str, Any]) -> str:
    note["agent"] = facts["agentId"][:80]
    tokens, uses = facts.get("totalTokens"), facts.get("totalToolUseCount")
    return joined(
        text_of(facts, "status").replace("_", " "),
        f"{tokens} tokens" if isinstance(tokens, int) else "",
        f"{uses} tool use{'' if uses == 1 else 's'}" if isinstance(uses, int) else "",
    )

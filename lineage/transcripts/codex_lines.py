"""Lines of Codex rollouts: one shape for old and new ones, and what in them people did not write. Pure."""

import json
import re
from typing import Any

import msgspec

from lineage.transcripts.digests import digest_of

# Codex wraps what it puts into user messages in one element; instructions of a folder have a heading.
_WRAPPED = re.compile(r"\s*<([a-z][a-z_ -]*)>.*</\1>\s*", re.S)
_HEADED = ("# AGENTS.md instructions", "<user_instructions>", "<environment_context>")
_BAD_ID = re.compile(r"[^A-Za-z0-9_-]")


def normalised(value: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """(type, payload) of a line. The oldest files have bare items without an envelope; none for their state records."""
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(kind, str) and isinstance(payload, dict):
        return kind, payload
    if "record_type" in value:
        return None
    if kind is None and isinstance(value.get("id"), str) and "timestamp" in value:
        return "session_meta", value
    if (isinstance(kind, str) and "payload" not in value and "role" in value) or kind in _BARE:
        return "response_item", value
    return (kind, {}) if isinstance(kind, str) else None


_BARE = frozenset({"reasoning", "function_call", "function_call_output", "local_shell_call", "web_search_call"})


def line_digest(value: dict[str, Any]) -> bytes:
    """What a line says, without its number in the file: a fork copies it under another."""
    said = {key: value[key] for key in value if key != "ordinal"}
    try:
        return digest_of(msgspec.json.encode(said, order="sorted"))
    except UnicodeEncodeError:  # an unpaired surrogate
        return digest_of(json.dumps(said, sort_keys=True).encode())


def is_injected(text: str) -> bool:
    """Whether Codex put this text into a user message."""
    return text.lstrip().startswith(_HEADED) or _WRAPPED.fullmatch(text) is not None


def call_id(value: dict[str, Any], key: str = "call_id") -> str:
    """A call's id, in the characters that the Messages API takes."""
    found = value.get(key)
    return _BAD_ID.sub("_", found)[:200] if isinstance(found, str) else ""


def parent_of(meta: dict[str, Any]) -> tuple[str, bool]:
    """(the thread that this one hangs on, whether as its subagent); empty when it hangs on none."""
    source = meta.get("source")
    subagent = source.get("subagent") if isinstance(source, dict) else None
    spawn = subagent.get("thread_spawn") if isinstance(subagent, dict) else None
    for found in (meta.get("parent_thread_id"), spawn.get("parent_thread_id") if isinstance(spawn, dict) else None):
        if isinstance(found, str) and found:
            return found, True
    fork = meta.get("forked_from_id")
    return (fork, subagent is not None) if isinstance(fork, str) else ("", False)

"""The one line that stands for an entry on the board: what was said, or what was done. Pure."""

import json
from typing import Any

from console.board.models import LINE_LENGTH
from console.json_text import one_line

# Kinds that tell something to who reads the board; the others are the machinery between them.
TELLING = (
    "user",
    "assistant",
    "lineage.branched",
    "lineage.abstract",
    "lineage.note",
    "lineage.finished",
    "document.edited",
)


def line_of(*, kind: str, prompt: str, model: str, data: str) -> str:
    """The entry's text on one line; the name of the tool where it only calls one. `model` and `data` are JSON texts."""
    facts = _parsed(data)
    facts = facts if isinstance(facts, dict) else {}
    if kind == "document.edited":
        return one_line(f"edited {facts.get('title', 'a document')}", LINE_LENGTH)
    if kind == "lineage.branched":
        return one_line(f"started {facts.get('intent', 'a branch')}", LINE_LENGTH)
    if kind == "lineage.note" and facts.get("sha"):
        return one_line(f"landed {str(facts['sha'])[:7]} {facts.get('title', '')}", LINE_LENGTH)
    text = prompt or str(facts.get("text") or "") or _said(_parsed(model))
    return one_line(text, LINE_LENGTH)


def _said(messages: Any) -> str:
    """The first text in the messages; else the tools that they call."""
    called: list[str] = []
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks if isinstance(blocks, list) else ():
            if not isinstance(block, dict):
                continue
            if block.get("type") == "text" and str(block.get("text", "")).strip():
                return str(block["text"])
            if block.get("type") == "tool_use":
                called.append(str(block.get("name", "")))
    return ", ".join(filter(None, called))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None

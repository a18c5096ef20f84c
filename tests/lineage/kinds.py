"""Kinds for tests of durability: a generation that answers with its input's number, and a model for background tasks."""

import json

from lineage.actions.entries import NewEntry, place_entries
from lineage.asking import Asker, register_asker
from lineage.models import Conversation
from lineage.tasks.definitions import Definition, replace_kind
from lineage.tasks.running import Run


def think(run: Run) -> None:
    """What a model would say, fixed before it is written."""
    with run.commit() as commit:
        commit.go("write", {"text": f"Answer to {len(run.input['submissions'])}."})


def write(run: Run) -> None:
    with run.commit() as commit:
        entry = NewEntry(kind="assistant", model=[{"role": "assistant", "content": run.facts["text"]}])
        place_entries(conversation=commit.conversation, entries=[entry])
        commit.complete()


GENERATION = Definition(
    kind="generation", version=1, first="think", phases={"think": think, "write": write}, foreground=True
)

OPS = [{"op": "add", "slug": "rounding", "kind": "fact", "line": "Tax is rounded per line", "body": "By law."}]


def answer(conversation: Conversation, prompt: str) -> str:
    """A memory for a landing, a summary for a conversation."""
    if "JSON list of ops" in prompt:
        return f"Here: {json.dumps(OPS)}"
    return json.dumps({"text": "It stands well.", "title": "Standing", "feature": "totals"})


def register_test_kinds() -> None:
    """In a process of its own."""
    replace_kind("generation", GENERATION)
    register_asker(Asker(configured=lambda conversation: True, ask=answer))

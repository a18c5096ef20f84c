"""*memorize*: after a landing, proposes what to remember of it, at most once per landing (L27). With a model configured it asks
the model and applies what passes the limits; else an operator decides."""

import json
import re
from typing import Any

from console.clock import now
from console.errors import DomainError
from console.json_text import dumped, one_line
from lineage.actions.landings import landing_note
from lineage.actions.memory import write_memory_ops
from lineage.asking import asker_for
from lineage.brief import memory_index
from lineage.models import Conversation, Landing, Memory, MemoryKind, MemoryProposal, Root
from lineage.models.memory import BODY_LENGTH, LINE_LENGTH, SLUG_LENGTH
from lineage.tasks.definitions import Definition, register_kind
from lineage.tasks.running import Run

NO_MODEL = "No model is configured: this is only what the landing says. Edit it, or drop it."
_RULES = (
    f"slug: kebab-case, at most {SLUG_LENGTH} characters; kind: {', '.join(MemoryKind.values)}; line: one line of at most "
    f"{LINE_LENGTH} characters; body: at most {BODY_LENGTH} characters; source: like #12/345."
)


def propose(run: Run) -> None:
    """Find the ops, outside of any transaction; they are fixed before anything is written."""
    landing = Landing.objects.select_related("conversation").get(pk=run.input["landing"])
    own = Conversation.objects.get(pk=landing.root_id)
    ask = asker_for(own)
    ops, why = [_plain_op(landing)], NO_MODEL
    if ask is not None:
        try:
            ops, why = _parsed(ask(_prompt(landing))), ""
        except ValueError as error:
            why = f"The model's answer could not be read ({error}). Edit this, or drop it."
    with run.commit() as commit:
        if ops:
            commit.go("write", {"ops": ops, "why": why})
        else:
            commit.complete({"ops": 0})


def write(run: Run) -> None:
    """Apply what a model proposed and the limits allow; leave the rest to an operator."""
    landing = Landing.objects.get(pk=run.input["landing"])
    ops, why = run.facts["ops"], str(run.facts["why"])
    with run.commit(root=landing.root_id) as commit:
        assert commit.root is not None
        if not why:
            try:
                write_memory_ops(root=commit.root, ops=ops, author=None)
            except DomainError as error:
                why = error.message
        if why:
            _leave_proposal(commit.root, landing, ops, why)
        commit.complete({"ops": len(ops), "proposed": bool(why)})


def _leave_proposal(root: Root, landing: Landing, ops: list[dict[str, Any]], why: str) -> None:
    MemoryProposal.objects.get_or_create(
        landing=landing, defaults={"root": root, "ops": dumped(ops), "why": why[:300], "created": now()}
    )


def _plain_op(landing: Landing) -> dict[str, Any]:
    """What the landing itself says, as one memory."""
    note, _ = landing_note(landing)
    slug = (
        re.sub(r"[^a-z0-9]+", "-", landing.title.lower()).strip("-")[:SLUG_LENGTH].strip("-") or f"landing-{landing.pk}"
    )
    known = Memory.objects.filter(root=landing.root_id, slug=slug).exists()
    return {
        "op": "update" if known else "add",
        "slug": slug,
        "kind": str(MemoryKind.FACT),
        "line": one_line(landing.title, LINE_LENGTH),
        "body": (landing.abstract or note)[:BODY_LENGTH],
        "source": f"#{landing.conversation_id}/{landing.at}",
    }


def _prompt(landing: Landing) -> str:
    note, _ = landing_note(landing)
    index = memory_index(landing.root_id)
    return "\n".join(
        [
            "Work has landed in this project. Say what a colleague who starts tomorrow has to know of it that the code does "
            "not tell: decisions and their reasons, facts, lessons. Nothing is also an answer.",
            "",
            note,
            *(["", "State at landing:", landing.abstract] if landing.abstract else []),
            "",
            *(["What is remembered already:", *index] if index else ["Nothing is remembered yet."]),
            "",
            'Answer with a JSON list of ops only: {"op":"add","slug","kind","line","body","source"}, '
            '{"op":"update","slug",...}, {"op":"delete","slug"}; [] for nothing. Limits: ' + _RULES,
        ]
    )


def _parsed(answer: str) -> list[dict[str, Any]]:
    start, end = answer.find("["), answer.rfind("]")
    if start < 0 or end < start:
        raise ValueError("it holds no JSON list")
    ops = json.loads(answer[start : end + 1])
    if not all(isinstance(op, dict) for op in ops):
        raise ValueError("its list holds something other than ops")
    return list(ops)


MEMORIZE = register_kind(
    Definition(
        kind="memorize",
        version=1,
        first="propose",
        phases={"propose": propose, "write": write},
        foreground=False,
        tries=4,
        pause_s=2.0,
    )
)

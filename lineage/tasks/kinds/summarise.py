"""*summarise*: after a run, has the model say where a conversation stands, as its abstract (L18). Made only where a model is
configured; its title becomes the conversation's unless a person gave one."""

from typing import Any

import msgspec

from console.errors import Conflict
from lineage.actions.abstracts import ABSTRACT, place_abstract
from lineage.actions.starts import create_task
from lineage.asking import asker_for
from lineage.context import answer_text
from lineage.loading import load_context
from lineage.models import Conversation, Kind, OpenAbstract, Task, TaskStatus
from lineage.models.conversations import TITLE_LENGTH
from lineage.tasks.definitions import Definition, register_kind
from lineage.tasks.running import Run

READ = 24_000  # characters of the end of the conversation that are summarised


class Summary(msgspec.Struct, kw_only=True):
    """What the model answers."""

    text: str
    title: str = ""
    feature: str = ""


def summarise_later(*, conversation: Conversation) -> Task | None:
    """A task after a run of a branch or session, in the caller's transaction; none without a model, none while one waits."""
    if conversation.kind in (Kind.ROOT, Kind.AGENT) or asker_for(conversation) is None:
        return None
    waiting = Task.objects.filter(conversation=conversation, kind="summarise").exclude(status=TaskStatus.TERMINAL)
    return None if waiting.exists() else create_task(kind="summarise", conversation=conversation, input={})


def ask(run: Run) -> None:
    """Ask outside of any transaction; what it says is fixed with the entry it tells of."""
    conversation = Conversation.objects.get(pk=run.conversation)
    asking = asker_for(conversation)
    at = conversation.head
    facts: dict[str, Any] | None = None
    if asking is not None and at:
        summary = _parsed(asking(_prompt(conversation, at)))
        facts = {"at": at, "text": summary.text[:ABSTRACT], "title": summary.title, "feature": summary.feature}
    with run.commit() as commit:
        if facts is None:
            commit.complete()
        else:
            commit.go("write", facts)


def write(run: Run) -> None:
    """Replace the abstract, unless a newer one was written meanwhile."""
    root = Conversation.objects.values_list("root_id", flat=True).get(pk=run.conversation)
    with run.commit(root=root, conversations=[root]) as commit:
        assert commit.root is not None
        try:
            result = place_abstract(
                root=commit.root,
                own=commit.conversations[root],
                conversation=commit.conversation,
                text=str(run.facts["text"]),
                at=int(run.facts["at"]),
                title=str(run.facts["title"])[:TITLE_LENGTH],
                feature=str(run.facts["feature"])[:TITLE_LENGTH],
            )
        except Conflict as newer:
            result = {"entry": None, "why": newer.message}
        commit.complete(result)


def _prompt(conversation: Conversation, at: int) -> str:
    said: list[str] = []
    for message in load_context(conversation, at).messages:
        text = answer_text([{**message, "role": "assistant"}])
        if text:
            said.append(f"{message['role']}: {text}")
    before = OpenAbstract.objects.filter(conversation=conversation).first()
    return "\n\n".join(
        [
            "Say where this work stands, for colleagues who work beside it: what is done, what is decided, what is open. One "
            "short paragraph, plain words, no list of steps.",
            f"It was started for: {conversation.intent or conversation.title}",
            *([f"It was summarised before as: {before.text}"] if before else []),
            "The end of the conversation:",
            "\n\n".join(said)[-READ:],
            'Answer with one JSON object only: {"text": the paragraph, "title": at most eight words, "feature": the part of '
            'the product, or ""}.',
        ]
    )


def _parsed(answer: str) -> Summary:
    start, end = answer.find("{"), answer.rfind("}")
    summary = msgspec.json.decode(answer[start : end + 1], type=Summary)
    if not summary.text.strip():
        raise ValueError("The summary is blank.")
    return summary


SUMMARISE = register_kind(
    Definition(
        kind="summarise",
        version=1,
        first="ask",
        phases={"ask": ask, "write": write},
        foreground=False,
        tries=4,
        pause_s=2.0,
    )
)

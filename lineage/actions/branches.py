"""Starting branches (L12–L17): the fork first, then the root's line, so that a branch never inherits its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Q

from console.access import Permission, Who
from console.errors import Conflict, Invalid
from console.json_text import dumped, one_line
from console.models import Actor, ActorKind
from console.requests import checked_request_id, remember, remembered
from lineage.access import conversation_for
from lineage.actions.entries import MODEL_BYTES, NewEntry, place_entries
from lineage.actions.forks import check_visible, fork_conversation
from lineage.actions.locks import lock_all
from lineage.actions.settling import settle
from lineage.actions.starts import create_task
from lineage.brief import Brief, memory_brief
from lineage.catchup import know_tally
from lineage.loading import visible_ranges
from lineage.models import (
    Conversation,
    Entry,
    Root,
    Submission,
    SubmissionStatus,
    SubmissionType,
    TallyKind,
    TallyLine,
    TitleSource,
)

TITLE = 60  # characters of an intent line that is a given title, the ellipsis included (L14)
PROMPT = 80  # and of one that is the beginning of a prompt
IMAGES = 20  # of one prompt: what a person pastes, not a folder


@dataclass(frozen=True, kw_only=True)
class Image:
    """A pasted image: base64 and its media type."""

    data: str
    media_type: str


def start_branch(
    *,
    who: Who | None,
    source: int,
    prompt: str,
    title: str | None = None,
    at: int | None = None,
    images: Sequence[Image] = (),
    model: str | None = None,
    thinking: str | None = None,
    by: int | None = None,
    request_id: str | None = None,
) -> int:
    """Fork `source` at its visible entry `at` (default: the latest) into a branch whose first input is the prompt; its number.

    `by` is the conversation that starts it. `who` is none for the product's own calls, whose request ids clients cannot reach.
    Refusals: `not_found`, `forbidden`, `invalid`, `folder_missing`.
    """
    request_id = checked_request_id(request_id)
    prompt, content = _checked_prompt(prompt, images)
    if who is not None:
        conversation_for(who, source, Permission.WRITE)
    actor = who.actor if who else None
    root_id = Conversation.objects.values_list("root_id", flat=True).get(pk=source)
    with transaction.atomic():
        root, rows = lock_all(root=root_id, conversations=[root_id, source])
        assert root is not None
        origin = rows[source]
        receiver = f"conversation:{source}"
        first = remembered(receiver=receiver, actor=actor, request_id=request_id)
        if first is not None:
            return int(first)
        _check_folder(origin)
        if at is not None:
            check_visible(origin, at)
        elif is_empty(origin):
            _write_reset(origin, root)
        at = origin.head if at is None else at
        brief = memory_brief(root, origin) if source == root.pk else None
        intent = intent_line(prompt, title)
        fork = fork_conversation(
            source=origin,
            at=at,
            title=intent,
            title_source=TitleSource.INTENT,
            intent=prompt,
            started_by=actor,
            started_from=by,
            model=model,
            thinking=thinking,
        )
        if brief is not None:
            _begin_with(brief, fork)
        _tell_root(root, rows[root.pk], origin, fork, at, intent, len(images), by, actor)
        create_task(kind="prompt", conversation=fork, input={"content": content, "author": actor})
        settle(conversation=fork)
        remember(receiver=receiver, actor=actor, request_id=request_id, result=fork.pk)
    return fork.pk


def intent_line(prompt: str, title: str | None) -> str:
    """One line for the tally: the given title, else how the prompt begins (L14)."""
    return one_line(title or "", TITLE) or one_line(prompt, PROMPT)


def is_empty(conversation: Conversation) -> bool:
    """No input was ever placed, and no visible entry carries model messages (L13)."""
    asked = Submission.objects.filter(conversation=conversation, type=SubmissionType.INPUT, seq__isnull=False)
    if asked.exclude(status=SubmissionStatus.WITHDRAWN).exists():
        return False
    visible = Q(pk__in=[])
    for source, first, last in visible_ranges(conversation):
        visible |= Q(conversation=source, seq__gte=first, seq__lte=last)
    return not Entry.objects.filter(visible).exclude(model="").exists()


def _checked_prompt(prompt: str, images: Sequence[Image]) -> tuple[str, str | list[dict[str, Any]]]:
    prompt = prompt.strip()
    if not prompt:
        raise Invalid("prompt", "A branch needs a prompt: it is the branch's first input.")
    if len(images) > IMAGES:
        raise Invalid("images", f"A prompt carries at most {IMAGES} images.", limit=IMAGES, actual=len(images))
    content: str | list[dict[str, Any]] = prompt
    if images:
        content = [{"type": "text", "text": prompt}]
        content += [
            {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}
            for image in images
        ]
    size = len(dumped(content))
    if size > MODEL_BYTES:
        raise Invalid(
            "prompt",
            f"The prompt has {size} characters as JSON; at most {MODEL_BYTES} fit.",
            limit=MODEL_BYTES,
            actual=size,
        )
    return prompt, content


def _check_folder(source: Conversation) -> None:
    if source.folder and not Path(source.folder).is_dir():
        raise Conflict(
            "folder_missing",
            f"The working folder {source.folder} of #{source.pk} is not there, so a branch could not work in it. "
            "Bring it back, or start from a conversation with another folder.",
            folder=source.folder,
        )


def _write_reset(source: Conversation, root: Root) -> None:
    """The entry that an empty conversation is forked at; an empty root becomes a tally from it (L13)."""
    (entry,) = place_entries(conversation=source, entries=[NewEntry(kind="reset", head=True)])
    if source.pk == root.pk and root.since is None:
        root.since = entry.seq
        root.save(update_fields=["since"])


def _begin_with(brief: Brief, fork: Conversation) -> None:
    reset = NewEntry(
        kind="reset",
        head=True,
        model=[{"role": "user", "content": brief.text}],
        data={"brief": {"tip": brief.tip}, "text": brief.text},
    )
    (entry,) = place_entries(conversation=fork, entries=[reset])
    know_tally(conversation=fork.pk, seq=entry.seq, position=brief.tip)


def _tell_root(
    root: Root,
    own: Conversation,
    source: Conversation,
    fork: Conversation,
    at: int,
    intent: str,
    images: int,
    by: int | None,
    actor: int | None,
) -> None:
    """The root's line, which its model reads; a source that is not the root keeps a marker for people (L15)."""
    started = f" by {named(by, actor)}" if by is not None else ""
    text = f"#{fork.pk} started{started} from #{source.pk}/{at}: {intent}"
    marker: dict[str, Any] = {"branch": fork.pk, "at": at, "intent": intent, "images": images}
    line = NewEntry(
        kind="lineage.branched",
        model=[{"role": "user", "content": text}],
        data=marker if source.pk == root.pk else {**marker, "from": source.pk},
        author=actor,
    )
    (entry,) = place_entries(conversation=own, entries=[line])
    TallyLine.objects.create(root=root, seq=entry.seq, kind=TallyKind.BRANCH, about=fork, text=text)
    if source.pk != root.pk:
        place_entries(conversation=source, entries=[NewEntry(kind="lineage.branched", data=marker, author=actor)])


def named(conversation: int, actor: int | None) -> str:
    """`#3 (@name)`, the name that of the agent who acts there."""
    agent = Actor.objects.filter(pk=actor, kind=ActorKind.AGENT).first() if actor is not None else None
    name = agent.name if agent else ""
    return f"#{conversation} (@{name})" if name else f"#{conversation}"

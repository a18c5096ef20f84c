"""Abstracts in the root (L18): liquid, so that the tally never reorders."""

from typing import Any

from django.db import transaction

from console.access import Permission, Who
from console.clock import now
from console.errors import Conflict, Invalid
from console.json_text import one_line
from console.requests import checked_request_id, remember, remembered
from lineage.access import conversation_for
from lineage.actions.entries import NewEdit, NewEntry, place_entries
from lineage.actions.locks import lock_all
from lineage.actions.states import announce_state
from lineage.loading import context_start
from lineage.models import Conversation, Kind, OpenAbstract, Root, TallyKind, TallyLine, TitleSource
from lineage.models.conversations import TITLE_LENGTH

ABSTRACT = 8000  # characters: every branch of the tree reads it


def write_abstract(
    *,
    who: Who,
    conversation: int,
    text: str,
    at: int | None = None,
    title: str | None = None,
    feature: str | None = None,
    request_id: str | None = None,
) -> dict[str, Any]:
    """Replace the abstract of a conversation in its root; answers `{entry, anchor}`, both none where none is written.

    Refusals: `not_found`, `forbidden`, `invalid`, `older`.
    """
    request_id = checked_request_id(request_id)
    row = conversation_for(who, conversation, Permission.WRITE)
    with transaction.atomic():
        root, rows = lock_all(root=row.root_id, conversations=[row.root_id, conversation])
        assert root is not None
        receiver = f"conversation:{conversation}"
        first = remembered(receiver=receiver, actor=who.actor, request_id=request_id)
        if first is not None:
            return dict(first)
        result = place_abstract(
            root=root,
            own=rows[root.pk],
            conversation=rows[conversation],
            text=text,
            at=at,
            title=title,
            feature=feature,
            author=who.actor,
        )
        remember(receiver=receiver, actor=who.actor, request_id=request_id, result=result)
    return result


def place_abstract(
    *,
    root: Root,
    own: Conversation,
    conversation: Conversation,
    text: str,
    at: int | None = None,
    title: str | None = None,
    feature: str | None = None,
    author: int | None = None,
) -> dict[str, Any]:
    """The same in a transaction that holds the root, its conversation `own` and the conversation itself."""
    text = text.strip()
    if not 1 <= len(text) <= ABSTRACT:
        raise Invalid(
            "text",
            f"An abstract has 1 to {ABSTRACT} characters; this one has {len(text)}.",
            limit=ABSTRACT,
            actual=len(text),
        )
    if conversation.kind in (Kind.ROOT, Kind.AGENT):
        return {"entry": None, "anchor": None, "why": "Roots and subagents keep no abstract of their own."}
    at = _checked_at(conversation, at)
    title, feature = one_line(title or "", TITLE_LENGTH), one_line(feature or "", TITLE_LENGTH)
    open_one = OpenAbstract.objects.filter(conversation=conversation).first()
    if open_one is not None and at < open_one.at:
        raise Conflict(
            "older",
            f"The abstract of #{conversation.pk} tells of #{conversation.pk}/{open_one.at} already, which is newer than {at}.",
            at=open_one.at,
        )
    anchor = _anchor_in_context(open_one, own)
    model = [{"role": "user", "content": abstract_text(conversation.pk, at, text, title)}]
    data = {"conversation": conversation.pk, **abstract_state(at=at, text=text, title=title, feature=feature)}
    entry = NewEntry(kind="lineage.abstract", data=data, model=model, author=author)
    if anchor is not None:
        edits = [NewEdit(target=anchor, messages=model)]
        entry = NewEntry(kind="lineage.abstract", data={**data, "anchor": anchor}, edits=edits, author=author)
    (placed,) = place_entries(conversation=own, entries=[entry])
    TallyLine.objects.create(
        root=root, seq=placed.seq, kind=TallyKind.ABSTRACT, about=conversation, text=model[0]["content"]
    )
    OpenAbstract.objects.update_or_create(
        conversation=conversation,
        defaults={
            "root": root,
            "anchor": anchor or placed.seq,
            "at": at,
            "text": text,
            "title": title,
            "feature": feature,
            "changed": now(),
        },
    )
    _rename(conversation, title)
    return {"entry": placed.seq, "anchor": anchor or placed.seq}


def abstract_text(conversation: int, at: int, text: str, title: str) -> str:
    """What the tree reads of an abstract: whose, of when, and the text."""
    return f"Abstract of #{conversation}{f' {title}' if title else ''}, as of #{conversation}/{at}:\n{text}"


def abstract_state(*, at: int, text: str, title: str, feature: str) -> dict[str, Any]:
    """The whole state of an abstract: what is left out is gone."""
    return {
        "at": at,
        "text": text,
        **({"title": title} if title else {}),
        **({"feature": feature} if feature else {}),
    }


def _checked_at(conversation: Conversation, at: int | None) -> int:
    """0 is the beginning: an agent that joined over MCP may tell of work that is not recorded here."""
    at = conversation.head if at is None else at
    if not 0 <= at <= conversation.head:
        raise Invalid(
            "at", f"#{conversation.pk} shows no entry {at}: its newest is {conversation.head}.", head=conversation.head
        )
    return at


def _anchor_in_context(open_one: OpenAbstract | None, own: Conversation) -> int | None:
    """The open anchor, unless a head put it out of the root's context: an edit of it would change nothing."""
    if open_one is None:
        return None
    start = context_start(own)
    return open_one.anchor if start is None or open_one.anchor >= start[2] else None


def _rename(conversation: Conversation, title: str) -> None:
    if title and conversation.title_source != TitleSource.PERSON and conversation.title != title:
        conversation.title, conversation.title_source = title, TitleSource.SUMMARY
        announce_state(conversation=conversation)

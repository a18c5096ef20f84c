"""What an agent has not read yet: notes, finishes, inputs and the news of its tally (L24). Reading is their placing."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from console.access import Permission, Who
from console.clock import now
from lineage.access import conversation_for
from lineage.actions.entries import lock_conversation, place_entries
from lineage.actions.runs import place_submissions
from lineage.actions.settling import settle
from lineage.catchup import catch_up_entry, know_tally
from lineage.context import as_blocks, parse_messages
from lineage.inboxes import has_reader
from lineage.models import Conversation, Note, NoteSource, Submission, SubmissionStatus, SubmissionType

BESIDE = 4000  # characters of unread notes and finishes that end an MCP answer (L24)


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """`items` in arrival order, `more` that did not fit and stay unread, `catch_up` the news of the tally."""

    items: list[dict[str, Any]]
    more: int
    catch_up: dict[str, Any] | None

    @property
    def is_empty(self) -> bool:
        return not self.items and not self.more and self.catch_up is None

    @property
    def text(self) -> str:
        """All of it as an agent reads it; "" when there is nothing."""
        parts = [self.catch_up["text"]] if self.catch_up else []
        parts += [item["text"] for item in self.items]
        if self.more:
            parts.append(f"{self.more} more: call inbox.")
        return "\n\n".join(parts)


def read_inbox(*, who: Who, conversation: int, limit: int | None = None, catch_up: bool = True) -> Inbox:
    """Take what is unread, at most `limit` characters of it; the rest stays unread. Answers an empty inbox without a write.

    A text that alone is longer than the limit is cut, and says where the whole stands. Refusals: `not_found`, `forbidden`.
    """
    conversation_for(who, conversation, Permission.WRITE)
    with transaction.atomic():
        row = lock_conversation(conversation)
        waiting = _unread(row)
        taken, more = _fitting(waiting, limit)
        news = _take_news(row) if catch_up else None
        queued = [submission for submission in taken if submission.status == SubmissionStatus.QUEUED]
        if queued:
            place_submissions(conversation=row, submissions=queued)
            _end_inputs(queued)
        moment = now()
        Note.objects.filter(submission__in=taken, read__isnull=True).update(read=moment, included="inbox")
        if queued or news:
            settle(conversation=row, announce=True)
    return Inbox(items=[_item(submission, limit) for submission in taken], more=more, catch_up=news)


def is_waiting_for(conversation: int) -> bool:
    """Whether `read_inbox` would give anything."""
    row = Conversation.objects.select_related("root").get(pk=conversation)
    return bool(_unread(row)) or catch_up_entry(row) is not None


def _unread(conversation: Conversation) -> list[Submission]:
    """Mail of a session; elsewhere notes and finishes that were placed but not read. A tally's stand for everyone."""
    if has_reader(conversation):
        rows = Submission.objects.filter(conversation=conversation, status=SubmissionStatus.QUEUED)
    elif conversation.pk == conversation.root_id and conversation.root.is_tally:
        return []
    else:
        rows = Submission.objects.filter(conversation=conversation, note__read__isnull=True, note__isnull=False)
        rows = rows.exclude(status__in=[SubmissionStatus.QUEUED, SubmissionStatus.WITHDRAWN])
    return list(rows.select_related("note", "author").order_by("pk"))


def _fitting(waiting: list[Submission], limit: int | None) -> tuple[list[Submission], int]:
    if limit is None:
        return waiting, 0
    taken: list[Submission] = []
    left = limit
    for submission in waiting:
        left -= len(_text(submission)) + 2
        if left < 0 and taken:
            break
        taken.append(submission)
    return taken, len(waiting) - len(taken)


def _take_news(row: Conversation) -> dict[str, Any] | None:
    news = catch_up_entry(row)
    if news is None:
        return None
    (entry,) = place_entries(conversation=row, entries=[news.entry])
    know_tally(conversation=row.pk, seq=entry.seq, position=news.position)
    return {"entry": entry.seq, "text": news.text, "position": news.position}


def _end_inputs(submissions: list[Submission]) -> None:
    """What the agent has read is its own to answer: its turn begins with its next entry (L8)."""
    inputs = [s.pk for s in submissions if s.type == SubmissionType.INPUT]
    Submission.objects.filter(pk__in=inputs).update(status=SubmissionStatus.DONE, ended=now())


def _item(submission: Submission, limit: int | None) -> dict[str, Any]:
    note = getattr(submission, "note", None)
    text = _text(submission)
    if limit is not None and len(text) > limit:
        whole = f"#{submission.conversation_id}/{submission.seq}"
        text = f"{text[:limit]}… (cut: characters 1 to {limit} of {len(text)}; the whole stands at {whole})"
    kind = "finished" if note and note.source == NoteSource.FINISHED else "note" if note else submission.type
    return {
        "id": submission.pk,
        "kind": str(kind),
        "entry": submission.seq,
        "from": note.sender_id if note else None,
        "source": note.source if note else None,
        "title": note.title if note else "",
        "author": {"id": submission.author.pk, "name": submission.author.name} if submission.author else None,
        "text": text,
        "time": submission.created.isoformat(),
    }


def _text(submission: Submission) -> str:
    """What its reader reads: the message, which says who sent it."""
    return "\n".join(
        str(block["text"])
        for message in parse_messages(submission.model)
        for block in as_blocks(message.get("content", ""))
        if isinstance(block.get("text"), str)
    )

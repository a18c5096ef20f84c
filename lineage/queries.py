"""Reading entries in pages: by number, never by clock; the cost follows the page, not the history (R3, C3)."""

from collections.abc import Sequence

import msgspec
from django.db.models import QuerySet

from console.errors import NotFound
from documents.attachments.limits import NAMED
from documents.attachments.models import Attachment
from lineage.entry_json import entry_json
from lineage.models import Conversation, Entry, EntryEdit, Submission, SubmissionStatus

PAGE = 50  # entries of a conversation's snapshot (CONTRACT)
LONGEST_PAGE = 1000


def entries_before(
    conversation: Conversation, *, before: int | None = None, limit: int = PAGE, inherited: bool = True
) -> list[Entry]:
    """The newest entries below `before` (default: the newest of all), in ascending order."""
    found: list[Entry] = []
    top = before
    for source, upto in reversed(_segments(conversation, inherited)):
        rows = _of(source)
        if upto is not None:
            rows = rows.filter(seq__lte=upto)
        if top is not None:
            rows = rows.filter(seq__lt=top)
        found += rows.order_by("-seq")[: limit - len(found)]
        if len(found) >= limit:
            break
    return found[::-1]


def entries_after(
    conversation: Conversation,
    *,
    after: int,
    limit: int = LONGEST_PAGE,
    inherited: bool = True,
    before: int | None = None,
) -> list[Entry]:
    """The oldest entries above `after` and below `before`, in ascending order."""
    found: list[Entry] = []
    for source, upto in _segments(conversation, inherited):
        if upto is not None and upto <= after:
            continue
        rows = _of(source).filter(seq__gt=after)
        if upto is not None:
            rows = rows.filter(seq__lte=upto)
        if before is not None:
            rows = rows.filter(seq__lt=before)
        found += rows.order_by("seq")[: limit - len(found)]
        if len(found) >= limit:
            break
    return found


def entries_json(entries: Sequence[Entry]) -> list[msgspec.Raw]:
    """The entries as CONTRACT's JSON, with their edits; one more query when any of them edits."""
    editing = [entry.pk for entry in entries if entry.edits]
    edits: dict[int, list[EntryEdit]] = {}
    if editing:
        for edit in EntryEdit.objects.filter(entry__in=editing).order_by("target"):
            edits.setdefault(edit.entry_id, []).append(edit)
    return [entry_json(entry, edits.get(entry.pk, ())) for entry in entries]


def prompts_of(conversation: Conversation) -> QuerySet[Entry, tuple[int, str]]:
    """(seq, line) of every own prompt: the outline, complete at once."""
    return (
        Entry.objects.filter(conversation=conversation).exclude(prompt="").order_by("seq").values_list("seq", "prompt")
    )


def watched_conversation(conversation: int) -> Conversation:
    """The row for the hub, which answers only watchers that were let in. Refusal: `not_found`, after an erasure."""
    row = Conversation.objects.filter(pk=conversation).first()
    if row is None:
        raise NotFound("conversation", f"#{conversation}")
    return row


def conversation_heads(conversations: Sequence[int]) -> QuerySet[Conversation, tuple[int, int, int]]:
    """(id, head, version of the small state) of each that exists."""
    return Conversation.objects.filter(pk__in=conversations).values_list("pk", "head", "state_version")


def fork_path(source: Conversation, at: int) -> list[list[int]]:
    """The path of a fork of `source` at its visible entry `at` (L3): only segments that hold entries up to `at`."""
    path: list[list[int]] = []
    start = 0  # entries of a segment lie above the end of the one before
    for conversation, upto in source.segments:
        if start >= at:
            break
        end = at if upto is None else min(upto, at)
        if end > start:
            path.append([conversation, end])
        start = end
    return path


def unsent_attachments(conversation: int, *, author: int) -> list[Attachment]:
    """What `author` uploaded to a conversation and no input brings, not one that waits either, oldest first."""
    rows = list(Attachment.objects.filter(conversation=conversation, seq=None, uploader=author).order_by("pk")[:NAMED])
    waiting = Submission.objects.filter(conversation=conversation, status=SubmissionStatus.QUEUED) if rows else ()
    named = "\n".join(submission.data for submission in waiting)
    return [row for row in rows if row.name not in named]


def _segments(conversation: Conversation, inherited: bool) -> list[tuple[int, int | None]]:
    return conversation.segments if inherited else [(conversation.pk, None)]


def _of(conversation: int) -> QuerySet[Entry]:
    return Entry.objects.filter(conversation=conversation).select_related("author")

"""Submitting to a conversation and taking back what is queued (L6, L7)."""

from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from console.access import Permission, Who, require
from console.clock import now
from console.errors import Conflict, Invalid, NotFound
from console.json_text import dumped
from console.requests import checked_request_id, remember, remembered
from lineage.access import conversation_for
from lineage.actions.attachments import brought_by
from lineage.actions.entries import MODEL_BYTES, ROLES, is_own_kind, lock_conversation, refuse_tally
from lineage.actions.runs import advance, is_working
from lineage.inboxes import has_reader
from lineage.models import Conversation, Kind, Submission, SubmissionStatus, SubmissionType, WhenBusy

BLOCKS = frozenset({"text", "image", "document"})  # what a person can say


@dataclass(frozen=True, kw_only=True)
class NewSubmission:
    """A submission as its entry will be. `model` are the messages that the model reads, none for a display-only write."""

    type: SubmissionType
    kind: str
    model: list[dict[str, Any]] | None = None
    data: dict[str, Any] = field(default_factory=dict)
    when_busy: WhenBusy = WhenBusy.FOLLOW_UP
    author: int | None = None


def submit(
    *,
    who: Who,
    conversation: int,
    type: SubmissionType,
    content: str | list[dict[str, Any]] | None = None,
    entry: dict[str, Any] | None = None,
    when_busy: WhenBusy = WhenBusy.FOLLOW_UP,
    attachments: list[str] | None = None,
    request_id: str | None = None,
) -> dict[str, Any]:
    """Admit an input or a write; answers `{id, status, entry?, reason?, why?}` as it stands after admission.

    `attachments` are the names of files that it brings, uploaded to this conversation before. An input of words that does
    not say which brings all that its author uploaded here and no input has brought yet.

    Refusals: `not_found`, `forbidden`, `invalid`, `tally`, `busy`, `no_reader`.
    """
    request_id = checked_request_id(request_id)
    conversation_for(who, conversation, Permission.WRITE)
    if attachments and content is None:
        raise Invalid("attachments", "Attachments go with content: an entry of your own brings none.")
    new = _checked(type, content, entry, when_busy, who.actor)
    with transaction.atomic():
        row = lock_conversation(conversation)
        receiver = f"conversation:{row.pk}"
        first = remembered(receiver=receiver, actor=who.actor, request_id=request_id)
        if first is not None:
            return dict(first)
        if new.type == SubmissionType.INPUT:
            _refuse_input(row, new)
        if content is not None:
            found = brought_by(
                conversation=row, names=attachments, author=who.actor, is_input=type == SubmissionType.INPUT
            )
            new.data.update(found)
        submission = enqueue(conversation=row, new=new)
        advance(conversation=row)
        submission.refresh_from_db()
        result = submission_json(submission)
        remember(receiver=receiver, actor=who.actor, request_id=request_id, result=result)
    return result


def enqueue(*, conversation: Conversation, new: NewSubmission) -> Submission:
    """Queue it in a conversation that the caller has locked; `advance` places it when its time has come."""
    return Submission.objects.create(
        conversation=conversation,
        type=new.type,
        status=SubmissionStatus.QUEUED,
        when_busy=new.when_busy,
        kind=new.kind,
        model=dumped(new.model) if new.model else "",
        data=dumped(new.data),
        author_id=new.author,
        created=now(),
    )


def withdraw_submission(*, who: Who, submission: int) -> Submission:
    """Take back what is still queued; again changes nothing. Refusals: `not_found`, `forbidden`, `not_queued`."""
    row = Submission.objects.select_related("conversation").filter(pk=submission).first()
    if row is None:
        raise NotFound("submission", submission)
    require(who, row.conversation.root_id, Permission.WRITE, what="submission", name=submission)
    with transaction.atomic():
        conversation = lock_conversation(row.conversation_id)
        row.refresh_from_db()
        if row.status == SubmissionStatus.WITHDRAWN:
            return row
        if row.status != SubmissionStatus.QUEUED:
            raise Conflict(
                "not_queued",
                f"Submission {row.pk} is {row.status} already, so it cannot be withdrawn. Stop the run instead.",
                state=row.status,
            )
        withdraw_queued(row)
        advance(conversation=conversation)
    return row


def withdraw_queued(row: Submission, *, reason: str = "", why: str = "") -> None:
    """The caller has locked its conversation."""
    row.status, row.reason, row.why, row.ended = SubmissionStatus.WITHDRAWN, reason, why, now()
    row.save(update_fields=["status", "reason", "why", "ended"])


def submission_json(row: Submission) -> dict[str, Any]:
    """`{id, status, entry?, reason?, why?}` (CONTRACT)."""
    found: dict[str, Any] = {"id": row.pk, "status": str(row.status)}
    if row.seq is not None:
        found["entry"] = row.seq
    if row.reason:
        found |= {"reason": row.reason, "why": row.why}
    return found


def _refuse_input(row: Conversation, new: NewSubmission) -> None:
    refuse_tally(row)
    if row.kind == Kind.SESSION and not has_reader(row):
        raise Conflict(
            "no_reader",
            f"#{row.pk} is the session of an outside agent that reads no inbox here. Start a branch from it to go on.",
        )
    if new.when_busy == WhenBusy.REJECT and is_working(row):
        raise Conflict("busy", f"#{row.pk} is running. Steer it, let the input follow the answer, or wait.")


def _checked(
    type: SubmissionType,
    content: str | list[dict[str, Any]] | None,
    entry: dict[str, Any] | None,
    when_busy: WhenBusy,
    author: int,
) -> NewSubmission:
    if (content is None) == (entry is None):
        raise Invalid("content", "Give either content, or an entry of your own: not both, and not neither.")
    kind, model = "user", None
    data: dict[str, Any] = {}
    if content is not None:
        model = [{"role": "user", "content": checked_content(content)}]
    elif entry is not None:
        kind, model, data = str(entry.get("kind", "")), entry.get("model"), entry.get("data") or {}
        if kind != "user" and not is_own_kind(kind):
            raise Invalid(
                "entry", "The entry's kind is user, or one of your own that begins with x. (at most 64 characters)."
            )
        _check_messages(model, type)
    size = len(dumped(model)) if model else 0
    if size > MODEL_BYTES:
        raise Invalid(
            "content", f"This has {size} characters as JSON; at most {MODEL_BYTES} fit.", limit=MODEL_BYTES, actual=size
        )
    return NewSubmission(type=type, kind=kind, model=model, data=data, when_busy=when_busy, author=author)


def checked_content(content: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Text or blocks that say something, or a refusal."""
    if isinstance(content, str):
        if not content.strip():
            raise Invalid("content", "The input is blank: there is nothing to answer.")
        return content
    if not content or any(block.get("type") not in BLOCKS for block in content):
        raise Invalid("content", "Content is text, or a list of blocks of type text, image or document.")
    return content


def _check_messages(model: Any, type: SubmissionType) -> None:
    if model is None and type == SubmissionType.WRITE:
        return
    usable = isinstance(model, list) and all(
        isinstance(message, dict) and message.get("role") in ROLES and isinstance(message.get("content"), str | list)
        for message in model
    )
    if not usable:
        raise Invalid("entry", "The entry's model is a list of messages with a role (user or assistant) and a content.")
    if type == SubmissionType.INPUT and (not model or model[-1]["role"] != "user"):
        raise Invalid("entry", "An input ends with a user message: that is what is answered.")

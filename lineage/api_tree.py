"""HTTP calls on inputs, branches, abstracts, notes, finishes, landings and memory (CONTRACT, HTTP). Parse, act, render (R1)."""

from functools import partial
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from console.answers import json_answer, listed, who_of
from console.crossing import crossed
from console.errors import Invalid
from console.live.doorbell import LONGEST_WAIT_S, doorbell
from lineage.access import conversation_for, root_for
from lineage.actions.abstracts import write_abstract
from lineage.actions.branches import Image, start_branch
from lineage.actions.inbox import Inbox, is_waiting_for, read_inbox
from lineage.actions.landings import NewLanding, record_landing
from lineage.actions.memory import apply_memory_ops, decide_proposal
from lineage.actions.notes import leave_note, receipt_json
from lineage.actions.notify import request_notify
from lineage.actions.stops import stop_conversation
from lineage.actions.submissions import submission_json, submit, withdraw_submission
from lineage.memories import memories_json, memory_json, proposal_json, proposals_of
from lineage.models import SubmissionType, WhenBusy
from lineage.receipts import notes_of

router = Router(tags=["tree"])


class SubmissionIn(Schema):
    type: Literal["input", "write"]
    content: str | list[dict[str, Any]] | None = None
    entry: dict[str, Any] | None = None
    when_busy: Literal["steer", "follow_up", "reject"] = "follow_up"
    attachments: list[str] | None = None
    request_id: str | None = None


class ImageIn(Schema):
    data: str
    media_type: str


class BranchIn(Schema):
    prompt: str
    title: str | None = None
    at: int | None = None
    images: list[ImageIn] = Field(default_factory=list)
    model: str | None = None
    thinking: str | None = None
    isolated: bool = False
    request_id: str | None = None


class AbstractIn(Schema):
    text: str
    at: int | None = None
    title: str | None = None
    feature: str | None = None
    request_id: str | None = None


class NoteIn(Schema):
    text: str
    sender: int | None = Field(default=None, alias="from")
    request_id: str | None = None


class NotifyIn(Schema):
    target: int
    wake: bool = True
    request_id: str | None = None


class CommitIn(Schema):
    sha: str
    subject: str


class LandingIn(Schema):
    conversation: int
    at: int
    sha: str
    base: str
    target: str
    commits: list[CommitIn]
    commit_count: int | None = None
    paths: list[str]
    divergence: str | dict[str, Any]
    title: str
    summary: str | None = None
    feature: str | None = None
    pushed: str | bool | None = None
    lander: str | None = None
    request_id: str | None = None


class OpsIn(Schema):
    ops: list[dict[str, Any]]
    request_id: str | None = None


class DecisionIn(Schema):
    decision: Literal["accept", "drop"]
    ops: list[dict[str, Any]] | None = None


@router.post("/conversations/{conversation}/submissions")
def post_submission(request: HttpRequest, conversation: int, body: SubmissionIn) -> HttpResponse:
    """Submits an input, which starts or steers a run, or a write, a passive entry."""
    result = submit(
        who=who_of(request),
        conversation=conversation,
        type=SubmissionType(body.type),
        content=body.content,
        entry=body.entry,
        when_busy=WhenBusy(body.when_busy),
        attachments=body.attachments,
        request_id=body.request_id,
    )
    return json_answer(result)


@router.delete("/submissions/{submission}")
def delete_submission(request: HttpRequest, submission: int) -> HttpResponse:
    """Withdraws a queued one."""
    return json_answer(submission_json(withdraw_submission(who=who_of(request), submission=submission)))


@router.post("/conversations/{conversation}/branches")
def post_branch(request: HttpRequest, conversation: int, body: BranchIn) -> HttpResponse:
    """Forks the conversation at an entry into a branch whose first input is the prompt."""
    who = who_of(request)
    if body.isolated:
        raise Invalid("isolated", "A work tree of its own for a branch does not exist yet. Leave `isolated` out.")
    number = start_branch(
        who=who,
        source=conversation,
        prompt=body.prompt,
        title=body.title,
        at=body.at,
        images=[Image(data=image.data, media_type=image.media_type) for image in body.images],
        model=body.model,
        thinking=body.thinking,
        by=who.conversation if who.is_agent else None,
        request_id=body.request_id,
    )
    return json_answer({"id": number})


@router.post("/conversations/{conversation}/abstract")
def post_abstract(request: HttpRequest, conversation: int, body: AbstractIn) -> HttpResponse:
    """Replaces the conversation's abstract in its root."""
    result = write_abstract(
        who=who_of(request),
        conversation=conversation,
        text=body.text,
        at=body.at,
        title=body.title,
        feature=body.feature,
        request_id=body.request_id,
    )
    return json_answer(result)


@router.post("/conversations/{conversation}/notes")
def post_note(request: HttpRequest, conversation: str, body: NoteIn) -> HttpResponse:
    """Leaves a note without waking anyone; `root` is the root of the tree that `from` is in."""
    to = _note_target(conversation)
    result = leave_note(who=who_of(request), to=to, text=body.text, sender=body.sender, request_id=body.request_id)
    return json_answer(result)


@router.get("/conversations/{conversation}/notes")
def list_notes(
    request: HttpRequest, conversation: int, direction: Literal["sent", "received"] = "received"
) -> HttpResponse:
    """The newest notes that it sent or received, each with its receipt."""
    row = conversation_for(who_of(request), conversation)
    return listed([receipt_json(note) for note in notes_of(row, direction)], None)


@router.post("/conversations/{conversation}/notify")
def post_notify(request: HttpRequest, conversation: int, body: NotifyIn) -> HttpResponse:
    """Asks that this conversation be told when `target` finishes."""
    result = request_notify(
        who=who_of(request), caller=conversation, target=body.target, wake=body.wake, request_id=body.request_id
    )
    return json_answer(result)


@router.get("/conversations/{conversation}/inbox")
async def get_inbox(request: HttpRequest, conversation: int, wait: float = 0) -> HttpResponse:
    """Unread notes, finishes, inputs and the news of the tally; reading is their placing. Waits up to `wait` seconds for any."""
    who = who_of(request)
    if not 0 <= wait <= LONGEST_WAIT_S:
        raise Invalid("wait", f"wait is 0 to {LONGEST_WAIT_S:.0f} seconds.", limit=int(LONGEST_WAIT_S))
    inbox = await crossed(partial(read_inbox, who=who, conversation=conversation))
    if inbox.is_empty and wait:
        row = await crossed(conversation_for, who, conversation)
        streams = [f"conversation:{row.pk}", f"conversation:{row.root_id}"]
        if await doorbell().wait(streams, partial(is_waiting_for, conversation), wait):
            inbox = await crossed(partial(read_inbox, who=who, conversation=conversation))
    return _inbox_answer(inbox)


@router.post("/conversations/{conversation}/stop")
def post_stop(request: HttpRequest, conversation: int) -> HttpResponse:
    """Ends the run and what it waits for."""
    return json_answer(stop_conversation(who=who_of(request), conversation=conversation))


@router.post("/landings")
def post_landing(request: HttpRequest, body: LandingIn) -> HttpResponse:
    """Records merged work; in a tally its note freezes the open abstract of the conversation."""
    new = NewLanding(
        at=body.at,
        sha=body.sha,
        base=body.base,
        target=body.target,
        commits=[{"sha": commit.sha, "subject": commit.subject} for commit in body.commits],
        commit_count=body.commit_count,
        paths=body.paths,
        divergence=body.divergence,
        title=body.title,
        summary=body.summary or "",
        feature=body.feature or "",
        pushed=body.pushed or "",
        lander=body.lander or "",
    )
    result = record_landing(who=who_of(request), conversation=body.conversation, new=new, request_id=body.request_id)
    return json_answer(result)


@router.get("/roots/{root}/memories")
def list_memories(request: HttpRequest, root: int) -> HttpResponse:
    """The index: one line per memory."""
    return listed(memories_json(root_for(who_of(request), root)), None)


@router.get("/roots/{root}/memories/{slug}")
def get_memory(request: HttpRequest, root: int, slug: str) -> HttpResponse:
    """One memory in full, with its history."""
    return json_answer(memory_json(root_for(who_of(request), root), slug))


@router.post("/roots/{root}/memories")
def post_memories(request: HttpRequest, root: int, body: OpsIn) -> HttpResponse:
    """Applies one atomic batch of ops."""
    return json_answer(apply_memory_ops(who=who_of(request), root=root, ops=body.ops, request_id=body.request_id))


@router.get("/roots/{root}/proposals")
def list_proposals(request: HttpRequest, root: int, status: str = "waiting") -> HttpResponse:
    """What landings propose to remember."""
    rows = proposals_of(root_for(who_of(request), root), status)
    return listed([proposal_json(row) for row in rows], None)


@router.post("/proposals/{proposal}/decision")
def post_proposal_decision(request: HttpRequest, proposal: int, body: DecisionIn) -> HttpResponse:
    """Accepts a proposal, perhaps edited, or drops it."""
    row = decide_proposal(who=who_of(request), proposal=proposal, accept=body.decision == "accept", ops=body.ops)
    return json_answer(proposal_json(row))


def _note_target(conversation: str) -> int | str:
    if conversation == "root":
        return conversation
    if not conversation.isdecimal() or len(conversation) > 18:
        raise Invalid("conversation", 'A note goes to the number of a conversation, or to "root".')
    return int(conversation)


def _inbox_answer(inbox: Inbox) -> HttpResponse:
    return json_answer(
        {"items": inbox.items, "next": None, "catch_up": inbox.catch_up, "more": inbox.more, "text": inbox.text}
    )

"""Landings (L19, L20): merged work, told in the root; in a tally it freezes the abstract of who did it."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from console.access import Permission, Who
from console.clock import now
from console.errors import Invalid
from console.json_text import dumped, one_line, storable
from console.models import Touched
from console.requests import checked_request_id, remember, remembered
from lineage.access import conversation_for
from lineage.actions.abstracts import abstract_state
from lineage.actions.entries import NewEdit, NewEntry, place_entries
from lineage.actions.locks import lock_all
from lineage.actions.starts import create_task
from lineage.models import (
    Conversation,
    Kind,
    Landing,
    Note,
    NoteSource,
    OpenAbstract,
    Root,
    Submission,
    SubmissionStatus,
    SubmissionType,
    TallyKind,
    TallyLine,
)
from lineage.models.conversations import TITLE_LENGTH

COMMITS = 1000  # listed in one landing; `commit_count` says how many there were
PATHS = 10_000
SHOWN_PATHS = 100  # named in the note, which every branch reads; the data has them all
SUBJECT = 200  # characters of one commit's line
SUMMARY = 16_000
SHA = re.compile(r"[0-9a-fA-F]{7,64}")


@dataclass(frozen=True, kw_only=True)
class NewLanding:
    """What landed, as the lander says it. `divergence` is a line of text or `{ahead, behind}`."""

    at: int
    sha: str
    base: str
    target: str
    commits: Sequence[dict[str, str]]
    paths: Sequence[str]
    divergence: str | dict[str, Any]
    title: str
    commit_count: int | None = None
    summary: str = ""
    feature: str = ""
    pushed: str | bool = ""
    lander: str = ""


def record_landing(
    *, who: Who | None, conversation: int, new: NewLanding, request_id: str | None = None, restored: bool = False
) -> dict[str, Any]:
    """Record a landing; answers `{id, root, note, status}`: noted (`note` is the entry), pending (a task will), or stored.

    `who` is none for the administrator's command. A `restored` one writes no note and nothing is memorized of it.
    Refusals: `not_found`, `forbidden`, `invalid`.
    """
    request_id = checked_request_id(request_id)
    row = (
        conversation_for(who, conversation, Permission.WRITE)
        if who is not None
        else Conversation.objects.get(pk=conversation)
    )
    actor = who.actor if who else None
    _check(new)
    with transaction.atomic():
        root, rows = lock_all(root=row.root_id, conversations=[row.root_id, conversation])
        assert root is not None
        receiver = f"root:{root.pk}"
        first = remembered(receiver=receiver, actor=actor, request_id=request_id)
        if first is not None:
            return dict(first)
        submitter = rows[conversation]
        if not 0 <= new.at <= submitter.head:
            raise Invalid(
                "at", f"#{conversation} shows no entry {new.at}: its newest is {submitter.head}.", head=submitter.head
            )
        landing = _store(root, submitter, new, actor, restored)
        Touched.objects.create(conversation=root.pk)  # the board counts the day's landings
        result = {"id": landing.pk, "root": root.pk, "note": None, "status": "stored"}
        if submitter.kind != Kind.ROOT and not restored:
            note = place_landing(root=root, own=rows[root.pk], landing=landing)
            if note is None:
                create_task(kind="landing-note", conversation=rows[root.pk], input={"landing": landing.pk})
            create_task(kind="memorize", conversation=rows[root.pk], input={"landing": landing.pk})
            result |= {"note": note, "status": "pending" if note is None else "noted"}
        remember(receiver=receiver, actor=actor, request_id=request_id, result=result)
    return result


def place_landing(*, root: Root, own: Conversation, landing: Landing) -> int | None:
    """Its note in a tally whose root and conversation the caller has locked, once; the note's entry, or none in an ordinary
    root. The open abstract is frozen with it in this transaction, so that none can be opened in between (L19)."""
    if not root.is_tally:
        return None
    receiver, key = f"conversation:{own.pk}", landing_key(landing)
    placed = remembered(receiver=receiver, actor=None, request_id=key)
    if placed is not None:
        return int(placed)
    text, data = landing_note(landing)
    message = f"{LANDER}{text}"
    edits: list[NewEdit] = []
    frozen = OpenAbstract.objects.filter(conversation=landing.conversation_id).first()
    if frozen is not None:
        state = abstract_state(at=frozen.at, text=frozen.text, title=frozen.title, feature=frozen.feature)
        data["abstract"] = state
        edits = [NewEdit(target=frozen.anchor)]
        message += f"\n\nState at landing, as of #{landing.conversation_id}/{frozen.at}:\n{frozen.text}"
    entry = NewEntry(
        kind="lineage.note",
        model=[{"role": "user", "content": message}],
        data=data,
        edits=edits,
        author=landing.author_id,
    )
    (note,) = place_entries(conversation=own, entries=[entry])
    if frozen is not None:
        frozen.delete()
    TallyLine.objects.create(
        root=root, seq=note.seq, kind=TallyKind.LANDING, about_id=landing.conversation_id, text=text
    )
    moment = now()
    submission = Submission.objects.create(
        conversation=own,
        type=SubmissionType.WRITE,
        status=SubmissionStatus.DONE,
        kind="lineage.note",
        author_id=landing.author_id,
        seq=note.seq,
        created=moment,
        ended=moment,
    )
    Note.objects.create(
        submission=submission,
        source=NoteSource.LANDER,
        sender_id=landing.conversation_id,
        title=landing.title,
        text=text,
        read=moment,  # a tally has no reader of its own: its branches read it
        included="tally",
    )
    remember(receiver=receiver, actor=None, request_id=key, result=note.seq)
    return note.seq


LANDER = "Note from the lander: "


def landing_key(landing: Landing) -> str:
    """The product's own request id of a landing's note in the root."""
    return f"landing:{landing.pk}"


def landing_note(landing: Landing) -> tuple[str, dict[str, Any]]:
    """(text, data) of the note. The model never reads the summary, which is data for people (L20)."""
    source = json.loads(landing.data)
    commits, paths = source["commits"], source["paths"]
    more, feature = landing.commit_count - len(commits), f" ({landing.feature})" if landing.feature else ""
    shown = ", ".join(paths[:SHOWN_PATHS])
    if len(paths) > SHOWN_PATHS:
        shown += f" and {len(paths) - SHOWN_PATHS} more"
    text = "\n".join(
        [
            f"Landed {landing.sha[:7]} on {landing.target} from #{landing.conversation_id}/{landing.at} "
            f"{landing.title}{feature}:",
            f"Diverged: {diverged(source['divergence'])}",
            *(one_line(commit["subject"], SUBJECT) for commit in commits),
            *([f"and {more} more"] if more else []),
            f"Changed: {shown}",
        ]
    )
    data = {**source, "more": more, "text": text, "from": landing.conversation_id, "source": str(NoteSource.LANDER)}
    return text, data


def diverged(divergence: str | dict[str, Any]) -> str:
    """The divergence in words."""
    if isinstance(divergence, str):
        return one_line(divergence, SUBJECT) or "unknown"
    return ", ".join(f"{value} {name}" for name, value in divergence.items()) or "not at all"


def _store(root: Root, submitter: Conversation, new: NewLanding, actor: int | None, restored: bool) -> Landing:
    data = {
        "at": new.at,
        "divergence": new.divergence,
        "sha": new.sha,
        "base": new.base,
        "target": new.target,
        "commits": [{"sha": commit["sha"], "subject": commit["subject"]} for commit in new.commits],
        "paths": list(new.paths),
        "title": new.title,
        "lander": new.lander,
        **({"summary": new.summary} if new.summary else {}),
        **({"feature": new.feature} if new.feature else {}),
        **({"pushed": new.pushed} if new.pushed else {}),
    }
    frozen = OpenAbstract.objects.filter(conversation=submitter).values_list("text", flat=True).first()
    return Landing.objects.create(
        root=root,
        conversation=submitter,
        at=new.at,
        sha=storable(new.sha),
        target=one_line(new.target, TITLE_LENGTH),
        title=one_line(new.title, TITLE_LENGTH),
        feature=one_line(new.feature, TITLE_LENGTH),
        commit_count=len(new.commits) if new.commit_count is None else new.commit_count,
        data=dumped(data),
        abstract=frozen or "",
        author_id=actor,
        restored=restored,
        time=now(),
    )


def _check(new: NewLanding) -> None:
    for name in ("sha", "base"):
        if not SHA.fullmatch(getattr(new, name)):
            raise Invalid(name, f"{name} is the hexadecimal name of a commit, 7 to 64 digits.")
    for name in ("target", "title"):
        if not getattr(new, name).strip():
            raise Invalid(name, f"A landing needs a {name}.")
    for name, limit, actual in (
        ("commits", COMMITS, len(new.commits)),
        ("paths", PATHS, len(new.paths)),
        ("summary", SUMMARY, len(new.summary)),
    ):
        if actual > limit:
            raise Invalid(name, f"{name} is limited to {limit}; this landing has {actual}.", limit=limit, actual=actual)
    if new.commit_count is not None and new.commit_count < len(new.commits):
        raise Invalid(
            "commit_count",
            f"commit_count is {new.commit_count}, but {len(new.commits)} commits are listed. Give the whole count, or none.",
            limit=len(new.commits),
            actual=new.commit_count,
        )

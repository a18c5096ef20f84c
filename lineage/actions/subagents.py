"""Starting subagents: conversations that a call owns (L1). They inherit nothing, and their answer is the call's result."""

from collections.abc import Sequence

from django.db import transaction

from console.access import Permission, Who
from console.clock import now
from console.errors import Conflict, Invalid
from console.json_text import storable
from console.models import Touched
from console.requests import checked_request_id, remember, remembered
from lineage.access import conversation_for
from lineage.actions.branches import intent_line
from lineage.actions.locks import lock_all
from lineage.actions.runs import advance
from lineage.actions.submissions import NewSubmission, enqueue
from lineage.models import Conversation, Kind, State, SubmissionType, TitleSource

PROMPT = 100_000  # characters: what a request still carries beside everything else
DEPTH = 5  # owners above a subagent: work that is divided more often is lost in handing over
CHILDREN = 100  # of one conversation: a tree that people can still watch


def start_subagent(
    *,
    who: Who,
    owner: int,
    at: int,
    call: str,
    prompt: str,
    title: str | None = None,
    tools: Sequence[str] = (),
    request_id: str | None = None,
) -> int:
    """A conversation owned by `owner`'s call, with the prompt as its first input; its number.

    It works in its owner's folder with its model; `tools` restricts it to those. Refusals: `not_found`, `forbidden`, `invalid`,
    `too_deep`, `too_many_agents`.
    """
    request_id = checked_request_id(request_id)
    prompt = storable(prompt).strip()
    if not 1 <= len(prompt) <= PROMPT:
        raise Invalid(
            "prompt",
            f"A prompt has 1 to {PROMPT} characters; this has {len(prompt)}.",
            limit=PROMPT,
            actual=len(prompt),
        )
    conversation_for(who, owner, Permission.WRITE)
    with transaction.atomic():
        _, rows = lock_all(conversations=[owner])
        row = rows[owner]
        receiver = f"conversation:{owner}"
        first = remembered(receiver=receiver, actor=who.actor, request_id=request_id)
        if first is not None:
            return int(first)
        _check_room(row)
        moment = now()
        agent = Conversation.objects.create(
            kind=Kind.AGENT,
            root_id=row.root_id,
            owner=row,
            owner_at=at,
            owner_call=call[:200],
            title=intent_line(prompt, title),
            title_source=TitleSource.INTENT,
            intent=prompt,
            started_by_id=who.actor,
            started_from=row,
            folder=row.folder,
            model=row.model,
            thinking=row.thinking,
            tools=list(tools),
            state=State.IDLE,
            state_since=moment,
            created=moment,
            touched=moment,
        )
        Touched.objects.create(conversation=agent.pk)
        enqueue(
            conversation=agent,
            new=NewSubmission(
                type=SubmissionType.INPUT,
                kind="user",
                model=[{"role": "user", "content": prompt}],
                author=who.actor,
            ),
        )
        advance(conversation=agent)
        remember(receiver=receiver, actor=who.actor, request_id=request_id, result=agent.pk)
    return agent.pk


def _check_room(row: Conversation) -> None:
    depth, above = 1, row
    while above.owner is not None:
        depth, above = depth + 1, above.owner
    if depth > DEPTH:
        raise Conflict("too_deep", f"#{row.pk} is {DEPTH} subagents deep already. Do this part yourself.", limit=DEPTH)
    if Conversation.objects.filter(owner=row).count() >= CHILDREN:
        raise Conflict(
            "too_many_agents",
            f"#{row.pk} has started {CHILDREN} subagents already. Do the rest yourself.",
            limit=CHILDREN,
        )

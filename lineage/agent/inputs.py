"""Collects what a request is made of, beside the messages (A1): prompt, place in the tree, AGENTS.md, memory, tools."""

import os
from contextlib import suppress
from typing import Any

from documents.attachments.gathered import gather
from documents.attachments.queries import attachments_in
from lineage.agent.failures import ToolFailed
from lineage.agent.folder.confine import open_file, place_of
from lineage.agent.images import IMAGE_BYTES
from lineage.agent.prompt import AGENTS_CHARACTERS, AGENTS_FILE, Agents, agents_section, system_prompt
from lineage.agent.request import Attached, Inputs
from lineage.agent.tools import offered
from lineage.brief import index_line
from lineage.loading import context_start, visible_ranges
from lineage.models import Conversation, Memory
from lineage.sections import lineage_section

_AGENTS_BYTES = 4 * AGENTS_CHARACTERS + 64 * 1024  # all that its first characters can take, and white space before them
_BUDGETS = {"low": 2_000, "medium": 6_000, "high": 12_000}  # tokens of thinking, inside max_tokens


def inputs_of(conversation: Conversation, *, model: str, name: str) -> Inputs:
    """Everything as it is now. `name` is the agent's."""
    folder = conversation.folder if os.path.isdir(conversation.folder or "") else ""
    tools = offered(folder=folder, only=conversation.tools)
    return Inputs(
        conversation=conversation.pk,
        model=model,
        system=system_prompt(folder=folder, name=name),
        lineage=lineage_section(conversation),
        agents=agents_in(folder) if folder else Agents(),
        tools=[tool.as_definition() for tool in tools],
        thinking=thinking_of(conversation.thinking),
        attached=attached_to(conversation),
        memories={memory.slug: index_line(memory) for memory in Memory.objects.filter(root=conversation.root_id)},
    )


def attached_to(conversation: Conversation) -> list[Attached]:
    """The attachments that the entries of its context brought, inherited ones too, in their order (D19)."""
    rows = attachments_in(visible_ranges(conversation))
    if not rows:
        return []
    begin = context_start(conversation)
    first = 1 if begin is None else begin[2]
    return [
        Attached(
            name=found.name,
            seq=found.seq,
            text=found.text,
            line=found.line,
            carried=found.carried,
            picture=_image(found.media_type, found.picture) if found.picture else None,
        )
        for found in gather([row for row in rows if (row.seq or 0) >= first], pictures=IMAGE_BYTES)
    ]


def _image(media_type: str, data: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def agents_in(folder: str) -> Agents:
    """The folder's AGENTS.md, read under the confinement of the tools (A2). What cannot be read gives no section, and says why."""
    try:
        with place_of(folder, AGENTS_FILE) as place:
            if place.stat() is None:
                return Agents()
            with open_file(place) as file, os.fdopen(os.dup(file), "rb") as opened:
                content = opened.read(_AGENTS_BYTES + 1)
    except ToolFailed as failure:
        return Agents(why=f"{AGENTS_FILE} was left out: {failure}")
    if len(content) > _AGENTS_BYTES:
        content = _without_half_character(content[:_AGENTS_BYTES])
    return agents_section(content)


def thinking_of(wish: str) -> dict[str, Any] | None:
    """The request's `thinking` for a conversation's wish: off, adaptive, low, medium, high, or a number of tokens."""
    if wish == "adaptive":
        return {"type": "adaptive"}
    budget = _BUDGETS.get(wish, 0)
    with suppress(ValueError):
        budget = budget or int(wish)
    return {"type": "enabled", "budget_tokens": budget} if 1024 <= budget < 16_384 else None


def _without_half_character(content: bytes) -> bytes:
    """Without the bytes of a character that the cut went through: at most three."""
    end = len(content)
    while end > len(content) - 4 and content[end - 1] & 0xC0 == 0x80:
        end -= 1
    return content[: end - 1] if content[end - 1] & 0xC0 == 0xC0 else content

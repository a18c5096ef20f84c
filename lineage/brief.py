"""The brief from which a branch of a root with memories starts (L17), and the line of each memory. Reads only."""

from dataclasses import dataclass

from console.json_text import one_line
from lineage.models import Conversation, Landing, Memory, Root

LANDINGS = 10  # the newest that a brief tells
LANDING_LENGTH = 300  # characters of the line of one


@dataclass(frozen=True, kw_only=True)
class Brief:
    """The text, and the tally's entry that it covers; none for a root that is no tally."""

    text: str
    tip: int | None


def memory_brief(root: Root, conversation: Conversation) -> Brief | None:
    """The brief of a root as it stands; none when it remembers nothing. `conversation` is the root's own row, locked."""
    index = memory_index(root.pk)
    if not index:
        return None
    landings = list(Landing.objects.filter(root=root).order_by("-pk")[:LANDINGS])
    parts = [f"What this project remembers ({len(index)}), kept in #{root.pk}:", *index]
    if landings:
        parts += ["", f"The {len(landings)} newest landings:", *(landing_line(landing) for landing in landings)]
    return Brief(text="\n".join(parts), tip=conversation.head if root.is_tally else None)


def memory_index(root: int) -> list[str]:
    """One line per memory, by slug."""
    return [index_line(memory) for memory in Memory.objects.filter(root=root).order_by("slug")]


def index_line(memory: Memory) -> str:
    """`slug (kind): line`."""
    return f"- {memory.slug} ({memory.kind}): {memory.line}"


def landing_line(landing: Landing) -> str:
    """What landed, on one line."""
    feature = f" ({landing.feature})" if landing.feature else ""
    return "- " + one_line(
        f"{landing.sha[:7]} on {landing.target} from #{landing.conversation_id}/{landing.at} {landing.title}{feature}",
        LANDING_LENGTH,
    )

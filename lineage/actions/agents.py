"""Who an agent of the console is: an actor of its own for each conversation that the console answers in, with a short name."""

from console.access import Who
from console.clock import now
from console.models import Actor, ActorKind, Role
from lineage.models import Conversation

# fmt: off
NAMES = (
    "wren", "sable", "juniper", "lark", "fern", "rook", "alder", "linnet", "moss", "teal", "hazel", "swift",
    "rowan", "plover", "birch", "finch", "sedge", "heron", "aspen", "martin", "clover", "dunlin", "larch",
    "siskin", "thyme", "curlew", "maple", "pipit", "yarrow", "egret", "cedar", "dipper", "bracken", "shrike",
    "willow", "bunting", "elder", "crake", "nettle", "godwit", "sorrel", "avocet", "poplar", "whimbrel", "tansy",
    "knot", "hawthorn", "osprey", "bryony", "smew", "spruce", "merlin", "mallow", "grebe", "holly", "kestrel",
    "vetch", "brambling", "ash", "redstart",
)
# fmt: on
"""Short names, told apart by the number of the conversation where two share one."""


def agent_of(*, conversation: Conversation) -> Actor:
    """The agent that answers in a conversation that the caller has locked; made with its first answer."""
    if conversation.agent is not None:
        return conversation.agent
    name = NAMES[conversation.pk % len(NAMES)]
    conversation.agent = Actor.objects.create(kind=ActorKind.AGENT, name=name, created=now())
    conversation.save(update_fields=["agent"])
    return conversation.agent


def who_is_agent(conversation: Conversation) -> Who:
    """The agent as one who asks: like an outside agent whose token belongs to this conversation."""
    agent = conversation.agent
    assert agent is not None  # it called a tool, so it has answered
    return Who(
        actor=agent.pk,
        name=agent.name,
        kind=ActorKind.AGENT,
        inside=True,
        root=conversation.root_id,
        conversation=conversation.pk,
        role=Role.AGENT,
    )

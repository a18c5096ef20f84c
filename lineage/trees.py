"""What pages read of whole trees (house rule: views ask here, never the models)."""

from dataclasses import dataclass, field

from django.db.models import Count, Q, QuerySet

from console.access import Who
from console.models import Actor, ActorKind, Membership, Role, Token
from lineage.access import visible_roots
from lineage.models import Conversation, Memory, MemoryKind, ProposalStatus, Root, State

# A palette is read at a glance; whoever wants more opens the search page.
PALETTE_ITEMS = 8
# Conversations of one root that an outline loads: all that are not idle first, then the newest. It says when there are more.
OUTLINE_ROWS = 500
# Idle children shown under one conversation; the others fold.
IDLE_SHOWN = 5
# Memory lines of one kind that stand beside a tree; the memory page has all.
MEMORIES_SHOWN = 6


def conversations_matching(who: Who, words: str) -> QuerySet[Conversation]:
    """Conversations that `who` may read, by number or by words of the title, newest first."""
    found = Conversation.objects.filter(root__in=visible_roots(who)).select_related("root__conversation")
    number = words.removeprefix("#").split("/")[0]
    if number.isdecimal() and len(number) < 19:
        return found.filter(Q(pk=int(number)) | Q(title__icontains=words)).order_by("-touched")
    for word in words.split():
        found = found.filter(title__icontains=word)
    return found.order_by("-touched")


@dataclass(kw_only=True)
class Node:
    """A conversation in the outline, with what hangs under it: subagents, branches and sessions apart."""

    id: int
    title: str
    kind: str
    state: str
    main: bool = False
    agents: list["Node"] = field(default_factory=list)
    shown: list["Node"] = field(default_factory=list)
    folded: list["Node"] = field(default_factory=list)

    @property
    def agent_states(self) -> list[str]:
        """The states of its subagents, each once, in the order of attention."""
        return [state for state in _ORDER if any(state == agent.state for agent in self.agents)]

    @property
    def agents_open(self) -> bool:
        return any(agent.state != State.IDLE for agent in self.agents)


@dataclass(frozen=True, kw_only=True)
class Outline:
    root: Node
    total: int
    loaded: int
    active: int


_ORDER = (State.FAILED, State.ANSWER, State.APPROVAL, State.RUNNING, State.CHILD, State.IDLE)


def outline(root: Root, current: int | None = None) -> Outline:
    """The shape of a tree. Costs two queries, and no more rows than `OUTLINE_ROWS` whatever the tree's size.

    What hangs under a conversation that was not loaded hangs under the root.
    """
    rows = Conversation.objects.filter(root=root)
    counts = rows.aggregate(total=Count("pk"), active=Count("pk", filter=~Q(state=State.IDLE)))
    fields = ("pk", "title", "kind", "state", "parent_id", "owner_id", "started_by_id", "path")
    busy = list(rows.exclude(state=State.IDLE).order_by("-touched").values_list(*fields)[:OUTLINE_ROWS])
    idle = list(rows.filter(state=State.IDLE).order_by("-touched").values_list(*fields)[: OUTLINE_ROWS - len(busy)])
    wanted = {row[0] for row in [*busy, *idle]}
    missing = {root.pk, *([current] if current else [])} - wanted
    extra = list(rows.filter(pk__in=missing).values_list(*fields)) if missing else []
    loaded = [*busy, *extra, *idle]
    nodes = {pk: Node(id=pk, title=title, kind=kind, state=state) for pk, title, kind, state, *_ in loaded}
    top = nodes[root.pk]
    for pk, _, kind, _, parent, owner, *_ in loaded:
        if pk == root.pk:
            continue
        above = nodes.get(owner if kind == "agent" else parent, top) if (owner or parent) else top
        (above.agents if kind == "agent" else above.shown).append(nodes[pk])
    keep = _way_to(current, {pk: owner or parent for pk, _, _, _, parent, owner, *_ in loaded})
    for node in nodes.values():
        _fold(node, keep)
    return Outline(root=top, total=counts["total"], loaded=len(nodes), active=counts["active"])


def _way_to(current: int | None, above: dict[int, int | None]) -> set[int]:
    way: set[int] = set()
    at = current
    while at is not None and at not in way:
        way.add(at)
        at = above.get(at)
    return way


def _fold(node: Node, keep: set[int]) -> None:
    """Idle children beyond the newest few fold; what is busy below, or on the way to the page, stays."""
    idle = 0
    children, node.shown = node.shown, []
    for child in children:
        quiet = child.state == State.IDLE and child.id not in keep and not child.shown and not child.agents_open
        idle += quiet
        (node.folded if quiet and idle > IDLE_SHOWN else node.shown).append(child)
    if len(node.folded) == 1:  # a fold that hides one line saves none
        node.shown += node.folded
        node.folded = []


def members_of(root: Root) -> list[Membership]:
    """People of a root, owners first."""
    rows = root.memberships.select_related("actor").filter(actor__closed__isnull=True)
    rank = {Role.OWNER: 0, Role.OPERATOR: 1, Role.VIEWER: 2}
    return sorted(rows, key=lambda row: (rank[Role(row.role)], row.actor.name))


def person_named(name: str) -> Actor | None:
    """The open actor of an account, by its name without regard to case."""
    return Actor.objects.filter(kind=ActorKind.PERSON, user__username__iexact=name, closed__isnull=True).first()


@dataclass(frozen=True, kw_only=True)
class MemoryIndex:
    """The lines of a root's memory by kind, the newest of each first, and what waits for a decision."""

    kinds: list[tuple[str, int, list[Memory]]]  # name, how many, the newest
    total: int
    proposals: int


def memory_index(root: Root) -> MemoryIndex:
    rows = list(root.memories.order_by("-changed"))
    kinds = []
    for kind, name in ((MemoryKind.DECISION, "Decisions"), (MemoryKind.FACT, "Facts"), (MemoryKind.LESSON, "Lessons")):
        own = [row for row in rows if row.kind == kind]
        if own:
            kinds.append((name, len(own), own[:MEMORIES_SHOWN]))
    waiting = root.memory_proposals.filter(status=ProposalStatus.WAITING).count()
    return MemoryIndex(kinds=kinds, total=len(rows), proposals=waiting)


# Tokens of one account page: an owner of many roots finds the others in the administration.
TOKENS_SHOWN = 200


def roots_of(who: Who) -> list[tuple[Root, Role]]:
    """The roots of a person with the role there, by title. A superuser owns all."""
    roots = visible_roots(who).select_related("conversation").order_by("conversation__title", "pk")
    if who.superuser:
        return [(root, Role.OWNER) for root in roots]
    roles = dict(Membership.objects.filter(actor=who.actor).values_list("root", "role"))
    return [(root, Role(roles[root.pk])) for root in roots]


def tokens_of(who: Who) -> list[Token]:
    """Live and ended tokens of the roots that `who` owns, the newest first."""
    owned = [root.pk for root, role in roots_of(who) if role == Role.OWNER]
    rows = Token.objects.filter(root__in=owned).select_related("actor", "root__conversation", "conversation")
    return list(rows.order_by("-pk")[:TOKENS_SHOWN])


def find_conversation(number: int) -> Conversation | None:
    """A conversation for the administrator's commands, which see all."""
    return Conversation.objects.filter(pk=number).first() if 0 < number < 2**63 else None

"""What a branch has not yet seen of its tally (L16, L29), as one bounded note."""

from dataclasses import dataclass

from django.db.models import Q

from console.json_text import one_line
from lineage.actions.entries import NewEntry
from lineage.loading import visible_ranges
from lineage.models import Conversation, Kind, TallyKind, TallyLine, TallySeen

LINES = 20  # news of one note: what a reader takes in before it begins to work
LINE_LENGTH = 400  # characters of one; its whole text stands in the root


@dataclass(frozen=True, kw_only=True)
class CatchUp:
    """The note, and the tally's entry up to which it tells."""

    entry: NewEntry
    position: int
    text: str


def catch_up_entry(conversation: Conversation) -> CatchUp | None:
    """What is new in the tally since the conversation last looked, without its own news; none when there is nothing."""
    root = conversation.root
    if root.since is None or conversation.pk == root.pk or conversation.kind == Kind.AGENT:
        return None
    known = tally_known(conversation, conversation.head)
    rows = TallyLine.objects.filter(root=root, seq__gt=max(known or 0, root.since))
    rows = rows.exclude(Q(about=conversation.pk) | Q(about__owner=conversation.pk))
    news = list(rows.order_by("seq"))
    shown = _newest_of_each(news)
    if not shown:
        return None
    position = news[-1].seq
    text = _rendered(root.pk, shown)
    message = {"role": "user", "content": text}
    data = {"source": "main", "from": root.pk, "position": position, "text": text}
    return CatchUp(entry=NewEntry(kind="lineage.note", model=[message], data=data), position=position, text=text)


def tally_known(conversation: Conversation, at: int) -> int | None:
    """How far a fork of the conversation at `at` knows the tally of its tree (L16), newest first: an inherited entry of the
    root, a brief's tip, a catch-up note's position. None: not at all."""
    root = conversation.root_id
    ranges = visible_ranges(conversation, at)
    inherited = next((last for source, _, last in ranges if source == root), None)
    looked = Q(pk__in=[])
    for source, _, last in ranges:
        if source != root:
            looked |= Q(conversation=source, seq__lte=last)
    if conversation.kind == Kind.SESSION or not ranges:
        looked |= Q(conversation=conversation.pk, seq=0)
    seen = TallySeen.objects.filter(looked).order_by("-seq").first()
    return inherited if seen is None else seen.position


def know_tally(*, conversation: int, seq: int, position: int | None) -> None:
    """At its entry `seq` the conversation knows the tally up to `position`; in the transaction that places the entry."""
    TallySeen.objects.create(conversation_id=conversation, seq=seq, position=position)


def _newest_of_each(news: list[TallyLine]) -> list[TallyLine]:
    """An abstract counts once per conversation, as it reads now, and not at all once a landing froze it."""
    last = {line.about_id: line.seq for line in news if line.kind in (TallyKind.ABSTRACT, TallyKind.LANDING)}
    return [line for line in news if line.kind != TallyKind.ABSTRACT or last[line.about_id] == line.seq]


def _rendered(root: int, lines: list[TallyLine]) -> str:
    shown = lines[-LINES:]
    more = len(lines) - len(shown)
    return "\n".join(
        [
            f"New in the tally of #{root} since you last looked:",
            *([f"{more} more before these, from #{root}/{lines[0].seq} on"] if more else []),
            *(f"- {one_line(line.text, LINE_LENGTH)}" for line in shown),
        ]
    )

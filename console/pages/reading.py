"""Which entries a page of a conversation holds: the newest first, older ones on scroll, and what came since (C3)."""

from dataclasses import dataclass

from console.pages.entries import Unit, answered_elsewhere, units_of
from lineage.models import Conversation, Entry
from lineage.queries import entries_after, entries_before

# Entries of one page: a screen shows some ten; what is shown must be read, drawn and sent before anything is seen.
PAGE = 80
# A page begins before the call whose result would stand at its top, if that lies at most so far above.
REACH = 64
REACH_STEP = 16


@dataclass(frozen=True, kw_only=True)
class Part:
    """Units in order, and which numbers they cover. `first` and `last` are 0 when there are none."""

    units: list[Unit]
    first: int
    last: int
    total: int  # the conversation's newest number: inherited and own entries in one line (L2)

    @property
    def has_older(self) -> bool:
        return self.first > 1

    @property
    def has_newer(self) -> bool:
        return 0 < self.last < self.total


def part_before(conversation: Conversation, before: int | None = None) -> Part:
    """The page below `before`; the newest page without it."""
    return _part(conversation, entries_before(conversation, before=before, limit=PAGE))


def part_at(conversation: Conversation, at: int) -> Part:
    """A page around the entry `at`, which stands near its top."""
    entries = entries_before(conversation, before=at, limit=REACH_STEP)
    entries += entries_after(conversation, after=at - 1, limit=PAGE - len(entries))
    return _part(conversation, entries)


def part_after(conversation: Conversation, after: int) -> Part:
    """What came after `after`, and the answers above it whose calls got results since."""
    fresh = entries_after(conversation, after=after, limit=PAGE)
    if not fresh:
        return Part(units=[], first=0, last=0, total=conversation.head)
    context = entries_before(conversation, before=fresh[0].seq, limit=REACH_STEP)
    part = _part(conversation, context + fresh)
    units = [unit for unit in part.units if unit.last > after]
    return Part(units=units, first=fresh[0].seq, last=fresh[-1].seq, total=conversation.head)


def whole_unit(conversation: Conversation, seq: int) -> Unit | None:
    """The unit that holds the entry, nothing left out."""
    entries = entries_before(conversation, before=seq + 1, limit=1)
    if not entries or entries[0].seq != seq:
        return None
    entries += entries_after(conversation, after=seq, limit=REACH)
    units = units_of(entries, conversation=conversation.pk, at=conversation.at, source=conversation.source, whole=True)
    return next((unit for unit in units if seq in unit.seqs), None)


def _part(conversation: Conversation, entries: list[Entry]) -> Part:
    reached = 0
    while entries and entries[0].seq > 1 and reached < REACH and answered_elsewhere(entries):
        above = entries_before(conversation, before=entries[0].seq, limit=REACH_STEP)
        if not above:
            break
        entries, reached = above + entries, reached + len(above)
    units = units_of(entries, conversation=conversation.pk, at=conversation.at, source=conversation.source)
    return Part(
        units=units,
        first=entries[0].seq if entries else 0,
        last=entries[-1].seq if entries else 0,
        total=conversation.head,
    )

"""What an import says: a line for each session, and totals."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from lineage.models import Conversation, Kind
from lineage.transcripts.compressed import plain_path
from lineage.transcripts.importing import Reading

_NOUNS = {Kind.BRANCH: ("branch", "branches"), Kind.AGENT: ("subagent", "subagents")}


@dataclass
class Totals:
    """Of one run. `sessions` counts files of sessions, their agents' not by themselves."""

    sessions: int = 0
    entries: int = 0
    conversations: int = 0
    unchanged: int = 0
    unreadable: int = 0
    left_out: int = 0
    failed: list[str] = field(default_factory=list)

    def lines(self, others: int = 0) -> list[str]:
        """The sentences at the end; what went wrong is said, not counted away."""
        found = [
            f"{counted(self.sessions, 'session', 'sessions')}: {counted(self.entries, 'new entry', 'new entries')}, "
            f"{counted(self.conversations, 'new conversation', 'new conversations')}, {self.unchanged} unchanged."
        ]
        if self.unreadable:
            found.append(
                f"{counted(self.unreadable, 'line is', 'lines are')} no JSON object or too long: kept as they are, and "
                "shown in their place as unreadable."
            )
        if self.left_out:
            found.append(
                f"{counted(self.left_out, 'entry was', 'entries were')} left out: the conversations were erased here."
            )
        if others:
            found.append(f"{counted(others, 'file is no transcript', 'files are no transcripts')} and left alone.")
        return found + self.failed


def summarise(readings: Iterable[Reading], totals: Totals, *, quiet: bool = False) -> list[str]:
    """A line for each session of these files, and their sums added to `totals`. With `quiet` only what changed."""
    sessions: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        root = str(plain_path(reading.file.path)).removesuffix(reading.file.name)
        sessions.setdefault((root, reading.file.session), []).append(reading)
    numbers = {number for group in sessions.values() for one in group for number in _conversations(one)}
    rows = Conversation.objects.in_bulk(numbers)
    return [line for (_, name), group in sessions.items() if (line := _session_line(name, group, rows, totals, quiet))]


def counted(number: int, one: str, many: str) -> str:
    """`1 entry`, `2 entries`."""
    return f"{number} {one if number == 1 else many}"


def _conversations(reading: Reading) -> set[int]:
    own = {reading.conversation} if reading.conversation else set()
    return own | set(reading.carried.opened)


def _session_line(name: str, group: list[Reading], rows: dict[int, Conversation], totals: Totals, quiet: bool) -> str:
    failed = [f"{one.file.path} could not be read: {one.failed}." for one in group if one.failed]
    entries = sum(sum(one.carried.entries.values()) for one in group)
    opened = Counter(rows[number].kind for one in group for number in one.carried.opened if number in rows)
    totals.sessions += 1
    totals.entries += entries
    totals.conversations += sum(opened.values())
    totals.unchanged += not entries and not failed
    totals.unreadable += sum(one.unreadable for one in group)
    totals.left_out += sum(one.carried.left_out for one in group)
    totals.failed += failed
    main = next((one for one in group if one.file.name == name), group[0])
    if quiet and not entries:
        return ""
    if not main.conversation or main.conversation not in rows:
        return f"{name}: nothing to show"
    parts = [counted(entries, "entry", "entries") if entries else "nothing new"]
    parts += [counted(opened[kind], *nouns) for kind, nouns in _NOUNS.items() if opened[kind]]
    row = rows[main.conversation]
    return f"#{row.pk} {row.title or name}: {', '.join(parts)}"

"""The tally as pages show it: its lines in their own order, with what each is about as it stands now (L15, L18, L19)."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, Q

from console.json_text import storable
from console.models import Actor
from lineage.actions.landings import diverged
from lineage.models import Conversation, Entry, Kind, Landing, OpenAbstract, Root, State, TallyKind, TallyLine
from lineage.waits import Waiting, waits_among

# Lines of one page: a screen shows some eight, and older ones come on scroll.
PAGE = 60
NOTES = "lineage.note"
# Commit subjects and paths of one landing that a page names; it says how many more there are.
COMMITS = 12
PATHS = 8


@dataclass(frozen=True, kw_only=True)
class BranchLine:
    """A branch in the tally: its intent, its state, its open abstract."""

    seq: int
    time: datetime
    conversation: Conversation
    intent: str
    starter: Actor | None
    at: int | None
    sub: bool  # hangs under the line above
    agents: int
    forks: int
    abstract: OpenAbstract | None
    landed: bool
    targets: list[int]  # for whom it waits
    callers: list[int]  # who waits for it

    sort = "branch"


@dataclass(frozen=True, kw_only=True)
class LandingLine:
    """A landing as its note keeps it."""

    seq: int
    time: datetime
    conversation: Conversation | None
    at: int | None
    sha: str
    target: str
    title: str
    feature: str
    commits: tuple[str, ...]
    more: int
    divergence: str
    paths: tuple[str, ...]
    frozen: str
    summary: str

    sort = "landing"

    @property
    def more_commits(self) -> int:
        return self.more + max(0, len(self.commits) - COMMITS)

    @property
    def more_paths(self) -> int:
        return max(0, len(self.paths) - PATHS)


@dataclass(frozen=True, kw_only=True)
class NoteLine:
    seq: int
    time: datetime
    author: Actor | None
    sender: int | None
    text: str

    sort = "note"


Line = BranchLine | LandingLine | NoteLine


@dataclass(frozen=True, kw_only=True)
class Timeline:
    lines: list[Line]
    total: int  # branch lines and landings of the whole tally
    older: int | None  # ask for what stands before this entry


def timeline(root: Root, *, before: int | None = None) -> Timeline:
    """The newest lines before the entry `before`. Seven queries, whatever the number of lines."""
    lines = root.lines.exclude(kind=TallyKind.ABSTRACT)
    total = lines.count()
    older = lines.filter(seq__lt=before) if before is not None else lines
    seqs = list(older.order_by("-seq").values_list("seq", flat=True)[: PAGE + 1])
    more = len(seqs) > PAGE
    seqs = seqs[:PAGE]
    low = seqs[-1] if more else 0
    entries = _entries(root, seqs, low=low, before=before)
    return Timeline(lines=_lines(root, entries), total=total, older=low if more else None)


def timeline_since(root: Root, *, after: int, about: Iterable[int] = ()) -> list[Line]:
    """Lines above the entry `after`, and those about the conversations that changed."""
    lines = root.lines.exclude(kind=TallyKind.ABSTRACT).filter(Q(seq__gt=after) | Q(about__in=list(about)))
    seqs = list(lines.order_by("-seq").values_list("seq", flat=True)[:PAGE])
    return _lines(root, _entries(root, seqs, low=after + 1, before=None))


def _entries(root: Root, seqs: list[int], *, low: int, before: int | None) -> list[Entry]:
    """The entries of the lines, and in a tally the notes that stand between them."""
    wanted = Q(seq__in=seqs)
    if root.is_tally:
        between = Q(kind=NOTES, seq__gte=low)
        wanted |= between & Q(seq__lt=before) if before is not None else between
    found = Entry.objects.filter(wanted, conversation=root.pk).select_related("author")
    return list(found.order_by("seq")[: 2 * PAGE])


def _lines(root: Root, entries: list[Entry]) -> list[Line]:
    told = {entry.seq: _told(entry) for entry in entries}
    about = dict(
        TallyLine.objects.filter(root=root, seq__in=list(told))
        .exclude(kind=TallyKind.ABSTRACT)
        .values_list("seq", "about")
    )
    rows = {
        row.pk: row
        for row in Conversation.objects.filter(pk__in=set(about.values()))
        .select_related("started_by")
        .annotate(agent_count=Count("agents", distinct=True), fork_count=Count("branches", distinct=True))
    }
    abstracts = {row.pk: row for row in OpenAbstract.objects.filter(conversation__in=rows)}
    landed = set(Landing.objects.filter(conversation__in=rows).values_list("conversation", flat=True))
    waiting = waits_among(list(rows))
    found: list[Line] = []
    for entry in entries:
        data = told[entry.seq]
        row = rows.get(about.get(entry.seq, 0))
        if data.get("sha"):
            found.append(_landing(entry, data, row))
        elif entry.kind == NOTES:
            found.append(_note(entry, data))
        elif row is not None:
            found.append(_branch(entry, data, row, abstracts.get(row.pk), row.pk in landed, waiting))
    return _indented(found)


def _indented(lines: list[Line]) -> list[Line]:
    """Forks that follow what they were forked from hang under it; elsewhere only their words say from where."""
    group: set[int] = set()
    shown: list[Line] = []
    for line in lines:
        if isinstance(line, BranchLine):
            hangs = line.conversation.parent_id in group
            group = group | {line.conversation.pk} if hangs else {line.conversation.pk}
            shown.append(replace(line, sub=hangs))
        else:
            shown.append(line)
    return shown


def _branch(
    entry: Entry,
    data: dict[str, Any],
    row: Conversation,
    abstract: OpenAbstract | None,
    landed: bool,
    waiting: Waiting,
) -> BranchLine:
    at = data.get("at")
    return BranchLine(
        seq=entry.seq,
        time=entry.time,
        conversation=row,
        intent=_string(data, "intent") or row.title,
        starter=row.started_by,
        at=at if isinstance(at, int) else row.at or None,
        sub=False,
        agents=row.agent_count,  # type: ignore[attr-defined]  # annotated above
        forks=row.fork_count,  # type: ignore[attr-defined]
        abstract=abstract,
        landed=landed,
        targets=waiting.targets.get(row.pk, []),
        callers=waiting.callers.get(row.pk, []),
    )


def _landing(entry: Entry, data: dict[str, Any], row: Conversation | None) -> LandingLine:
    at, more = data.get("at"), data.get("more")
    commits = data.get("commits")
    paths = data.get("paths")
    return LandingLine(
        seq=entry.seq,
        time=entry.time,
        conversation=row,
        at=at if isinstance(at, int) else None,
        sha=_string(data, "sha"),
        target=_string(data, "target"),
        title=_string(data, "title"),
        feature=_string(data, "feature"),
        commits=tuple(_subject(commit) for commit in commits) if isinstance(commits, list) else (),
        more=more if isinstance(more, int) else 0,
        divergence=_diverged(data.get("divergence")),
        paths=tuple(storable(str(path)) for path in paths) if isinstance(paths, list) else (),
        frozen=_frozen(data),
        summary=_string(data, "summary"),
    )


def _diverged(divergence: Any) -> str:
    return storable(diverged(divergence)) if isinstance(divergence, str | dict) else ""


def _frozen(data: dict[str, Any]) -> str:
    state = data.get("abstract") or data.get("state")
    return _string(state, "text") if isinstance(state, dict) else _string(data, "abstract")


def _subject(commit: Any) -> str:
    return storable(str(commit.get("subject", ""))) if isinstance(commit, dict) else storable(str(commit))


def _note(entry: Entry, data: dict[str, Any]) -> NoteLine:
    sender = data.get("from") or data.get("sender")
    return NoteLine(
        seq=entry.seq,
        time=entry.time,
        author=entry.author,
        sender=sender if isinstance(sender, int) else None,
        text=_string(data, "text") or _read(entry),
    )


def _read(entry: Entry) -> str:
    """What the model reads in it, when the data does not tell."""
    messages = json.loads(entry.model) if entry.model else []
    content = messages[0].get("content") if messages else ""
    if isinstance(content, str):
        return storable(content)
    parts = content if isinstance(content, list) else []
    return storable("\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict)))


def _told(entry: Entry) -> dict[str, Any]:
    data = json.loads(entry.data)
    return data if isinstance(data, dict) else {}


def _string(data: dict[str, Any], key: str) -> str:
    found = data.get(key)
    return storable(found) if isinstance(found, str) else ""


# Conversations beside the tally that a page lists: the newest; the outline and search have the others.
BESIDE = 60


def beside_the_tally(root: Root) -> list[Conversation]:
    """Sessions and branches that no line tells of, newest first: what was imported or joined."""
    told = root.lines.filter(kind=TallyKind.BRANCH).values("about")
    rows = Conversation.objects.filter(root=root, kind__in=[Kind.SESSION, Kind.BRANCH]).exclude(pk__in=told)
    return list(rows.order_by("-touched")[:BESIDE])


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many conversations of a tree are in which state, in the order of attention."""

    states: list[tuple[str, int]]
    total: int
    landings: int
    landings_today: int


_ORDER = (State.RUNNING, State.APPROVAL, State.ANSWER, State.CHILD, State.FAILED, State.IDLE)


def counts(root: Root, *, since: datetime) -> Counts:
    """Counted now, over the tree's own index."""
    found = dict(
        Conversation.objects.filter(root=root)
        .values_list("state")
        .annotate(count=Count("pk"))
        .values_list("state", "count")
    )
    landings = Landing.objects.filter(root=root).aggregate(
        total=Count("pk"), today=Count("pk", filter=Q(time__gte=since))
    )
    return Counts(
        states=[(str(state), found[state]) for state in _ORDER if found.get(state)],
        total=sum(found.values()),
        landings=landings["total"],
        landings_today=landings["today"],
    )

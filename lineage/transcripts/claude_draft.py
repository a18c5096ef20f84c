"""A plan of Claude Code lines in the making: conversations, entries, states and titles, each noted in the memory too. Pure."""

from typing import Any

import msgspec

from lineage.transcripts.claude_lines import Sort, name_in
from lineage.transcripts.claude_memory import MODEL, RESULT, TYPED, Branch, FileState, Memory
from lineage.transcripts.claude_places import REAL
from lineage.transcripts.plan import Appended, Opened, Place, PlannedEntry, RunState, Stated, Step, Titled, TitleRank
from lineage.transcripts.tools import one_encoding

_FLAGS = {Sort.PROMPT: TYPED, Sort.RESULT: RESULT}
_FACTS = (("cwd", "cwd"), ("gitBranch", "git_branch"), ("version", "version"))


class Draft:
    """What one reading of a file adds."""

    def __init__(self, memory: Memory, file: FileState) -> None:
        self.memory = memory
        self.file = file
        self.steps: list[Step] = []
        self.dirty: set[int] = set()

    def new(self, branch: Branch) -> int:
        number = len(self.memory.branches)
        self.memory.put_branch(number, branch)
        self.dirty.add(number)
        return number

    def change(self, number: int) -> Branch:
        """The conversation, to be changed in place."""
        self.dirty.add(number)
        return self.memory.branches[number]

    def append(self, number: int, entry: PlannedEntry, sort: Sort) -> int:
        """Add an entry; answers its ordinal. A conversation is told of with its first real entry; notices before it wait."""
        branch = self.change(number)
        ordinal = self.memory.put_entry(number, _FLAGS.get(sort, 0) | (MODEL if entry.model else 0))
        if branch.agent == self.file.agent:
            self.file.wrote = number
        if sort == Sort.PROMPT:
            branch.last_typed = ordinal
        if branch.shown:
            self.steps.append(Appended(key=branch.key, entry=entry))
        elif sort in REAL:
            self._open(branch, entry)
        else:
            branch.held = [*branch.held, _storable(entry)]
        return ordinal

    def move(self, number: int) -> None:
        """A file runs one conversation at a time: one that it leaves for another is not running any more."""
        if self.memory.branches[number].agent != self.file.agent:
            return  # a sidechain inside an old main file
        left = self.file.wrote
        if 0 <= left != number:
            branch = self.change(left)
            branch.waits = {}
            if branch.state != RunState.FAILED:
                self.state(left, (RunState.IDLE, ""))
        self.file.current = number

    def state(self, number: int, state: tuple[RunState, str] | None) -> None:
        if state is not None:
            branch = self.change(number)
            branch.state, branch.why = state

    def title(self, number: int, title: str, rank: TitleRank) -> None:
        branch = self.memory.branches[number]
        if title and branch.shown and rank >= branch.rank and (title, rank) != (branch.title, branch.rank):
            branch.title, branch.rank = title, rank
            self.dirty.add(number)
            self.steps.append(Titled(key=branch.key, title=title, rank=rank))

    def changed_facts(self, value: dict[str, Any]) -> dict[str, Any]:
        """Folder, git branch and version of the program, on the first entry and wherever they change."""
        changed: dict[str, Any] = {}
        for key, name in _FACTS:
            told = name_in(value, key)
            if told and told != getattr(self.file, name):
                setattr(self.file, name, told)
                changed[name] = told
        return changed

    def close(self) -> None:
        """Tell each state once, and note what changed."""
        for number in sorted(self.dirty):
            branch = self.memory.branches[number]
            told = f"{branch.state}|{branch.why}"
            if branch.shown and told != branch.told:
                branch.told = told
                self.steps.append(Stated(key=branch.key, state=branch.state, why=branch.why))
            self.memory.put_branch(number, branch)

    def _open(self, branch: Branch, first: PlannedEntry) -> None:
        branches = self.memory.branches
        self.steps.append(
            Opened(
                key=branch.key,
                kind=branch.kind,
                parent=Place(branches[branch.parent[0]].key, branch.parent[1]) if branch.parent else None,
                owner=Place(branches[branch.owner[0]].key, branch.owner[1]) if branch.owner else None,
                call=branch.call,
                folder=branch.folder,
                time=(branch.held or [first])[0].time,
            )
        )
        self.steps += (Appended(key=branch.key, entry=entry) for entry in [*branch.held, first])
        branch.shown, branch.held = True, []


def _storable(entry: PlannedEntry) -> PlannedEntry:
    """A notice that is kept between readings: its text must survive an encoding."""
    return msgspec.structs.replace(entry, data=_encodable(entry.data), model=_encodable(entry.model))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else one_encoding(value)
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value

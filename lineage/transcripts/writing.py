"""A plan of Codex or pi lines in the making: conversations, entries, states and titles, each noted in the memory too. Pure."""

from datetime import datetime
from typing import Any

import msgspec

from lineage.transcripts.plan import (
    Appended,
    Linked,
    Opened,
    OpenedKind,
    Place,
    PlannedEntry,
    RunState,
    Stated,
    Step,
    Titled,
    TitleRank,
    Used,
)  # fmt: skip
from lineage.transcripts.tables import Tables


class Kept(msgspec.Struct, array_like=True):
    """What is remembered of one conversation."""

    count: int = 0
    content: int = 0  # the ordinal of its last entry that is no mere notice
    kind: str = ""
    owner: str = ""
    owner_ordinal: int = 0
    state: str = RunState.IDLE
    why: str = ""
    told: str = ""
    title: str = ""
    rank: int = 0
    model: str = ""
    last_prompt: int = 0
    last_text: str = ""  # of that prompt, to know it when it is sent again
    cut_short: bool = False


class Writing:
    """What one reading of a file adds."""

    def __init__(self, memory: Tables) -> None:
        self.memory = memory
        self.steps: list[Step] = []
        self._open: dict[str, Kept] = {}

    def kept(self, key: str) -> Kept | None:
        """The conversation, to be changed in place; none when there is none of that key."""
        if key not in self._open:
            found = self.memory.get("conversation", key)
            if found is None:
                return None
            self._open[key] = msgspec.convert(found, Kept)
        return self._open[key]

    def known(self, key: str) -> Kept:
        found = self.kept(key)
        assert found is not None
        return found

    def begin(
        self,
        key: str,
        kind: OpenedKind,
        *,
        parent: Place | None = None,
        owner: Place | None = None,
        call: str = "",
        folder: str = "",
        time: datetime | None = None,
    ) -> str:
        self._open[key] = Kept(
            kind=kind,
            owner=owner.conversation if owner else "",
            owner_ordinal=owner.ordinal if owner else 0,
        )
        self.steps.append(Opened(key=key, kind=kind, parent=parent, owner=owner, call=call, folder=folder, time=time))
        return key

    def append(self, key: str, entry: PlannedEntry, *, notice: bool = False) -> int:
        kept = self.known(key)
        kept.count += 1
        if not notice:
            kept.content = kept.count
        self.steps.append(Appended(key=key, entry=entry))
        return kept.count

    def link(self, key: str, owner: Place, call: str) -> None:
        kept = self.known(key)
        kept.owner, kept.owner_ordinal = owner.conversation, owner.ordinal
        self.steps.append(Linked(key=key, owner=owner, call=call))

    def state(self, key: str, state: RunState, why: str = "") -> None:
        kept = self.known(key)
        kept.state, kept.why = state, why

    def title(self, key: str, title: str, rank: TitleRank) -> None:
        kept = self.known(key)
        if title and rank >= kept.rank and (title, rank) != (kept.title, kept.rank):
            kept.title, kept.rank = title, rank
            self.steps.append(Titled(key=key, title=title, rank=rank))

    def model(self, key: str, model: str) -> None:
        kept = self.known(key)
        if model and model != kept.model:
            kept.model = model
            self.steps.append(Used(key=key, model=model))

    def close(self) -> list[Step]:
        """Tell each state once, and note what changed; answers all steps."""
        for key, kept in self._open.items():
            told = f"{kept.state}|{kept.why}"
            if told != kept.told:
                kept.told = told
                self.steps.append(Stated(key=key, state=RunState(kept.state), why=kept.why))
            value: Any = msgspec.to_builtins(kept)
            if value != self.memory.get("conversation", key):
                self.memory.put("conversation", key, value)
        return self.steps

"""Who is at a document (D17): one process's people and those that other processes told of. Pure: no clock, no network.

`now` is any clock in seconds that only goes forward.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LISTED = 50  # people; above it, those who only read are a count
GONE_S = 30.0  # without a sign, of a person or of another process, they have left
WRITING_S = 60.0  # since the last edit, somebody counts as one who writes

type People = dict[str, dict[str, Any]]
"""By connection: CONTRACT's `{connection, who, anchor, head, unit, revision}`."""


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """What another process said last."""

    people: People
    writers: frozenset[str]
    watchers: int
    heard: float


@dataclass(kw_only=True)
class Crowd:
    """Everybody at one document. `shown` and `readers` are what the watchers of this process were told."""

    watchers: int = 0
    people: People = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    wrote: dict[str, float] = field(default_factory=dict)
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)
    shown: People = field(default_factory=dict)
    readers: int = 0

    def put(self, person: dict[str, Any], now: float) -> None:
        """A person shows where it is; an anchor of none is leaving."""
        connection = person["connection"]
        if person["anchor"] is None:
            self.drop(connection)
            return
        self.people[connection] = person
        self.seen[connection] = now

    def drop(self, connection: str) -> None:
        for known in (self.people, self.seen, self.wrote):
            known.pop(connection, None)

    def write(self, connection: str, now: float) -> None:
        """Its edit was recorded."""
        self.wrote[connection] = now

    def expire(self, now: float) -> None:
        """Who gave no sign has left."""
        for connection in [one for one, seen in self.seen.items() if now - seen > GONE_S]:
            self.people.pop(connection, None)
            del self.seen[connection]
        for hub in [hub for hub, other in self.elsewhere.items() if now - other.heard > GONE_S]:
            del self.elsewhere[hub]

    def message(self, now: float) -> dict[str, Any]:
        """What other processes are told of this one's people: all of it, which is small and never out of step."""
        writers = self._writers(now)
        people = self.people if len(self.people) <= LISTED else {c: p for c, p in self.people.items() if c in writers}
        return {"people": list(people.values()), "writers": sorted(writers), "watchers": self.watchers}

    def take(self, hub: str, message: Mapping[str, Any], now: float) -> None:
        """What another process told; nobody there any more is not kept."""
        people = {person["connection"]: person for person in message["people"]}
        if not message["watchers"]:
            self.elsewhere.pop(hub, None)
            return
        self.elsewhere[hub] = Elsewhere(
            people=people, writers=frozenset(message["writers"]), watchers=message["watchers"], heard=now
        )

    def news(self, now: float) -> dict[str, Any] | None:
        """What changed since it was asked last, as `{people, readers}`; none when nothing did."""
        listed = self._listed(now)
        changed = [person for connection, person in listed.items() if self.shown.get(connection) != person]
        changed += [person | {"anchor": None, "head": None} for one, person in self.shown.items() if one not in listed]
        readers = max(0, self._everybody() - len(listed))
        if not changed and readers == self.readers:
            return None
        self.shown, self.readers = listed, readers
        return {"people": changed, "readers": readers}

    def whole(self) -> dict[str, Any]:
        """All that was shown so far, for one who joins."""
        return {"people": list(self.shown.values()), "readers": self.readers}

    def _everybody(self) -> int:
        return self.watchers + sum(other.watchers for other in self.elsewhere.values())

    def _listed(self, now: float) -> People:
        people = dict(self.people)
        writers = self._writers(now)
        for other in self.elsewhere.values():
            people |= other.people
            writers |= other.writers
        if self._everybody() <= LISTED:
            return people
        return {connection: person for connection, person in people.items() if connection in writers}

    def _writers(self, now: float) -> frozenset[str]:
        return frozenset(one for one, wrote in self.wrote.items() if now - wrote <= WRITING_S)

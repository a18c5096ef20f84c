"""What a hub knows of a stream: whatever is lost, doubled or overtaken, watchers get every event once, in order (R3, D16)."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from console.events import Changed, Facts, Grown, Rows, raw
from console.live.frames import LARGEST_PART, Frame, events_frames
from console.live.logs import CATCH_UP, FactsLog, Head, Opening, RowsLog, Sees, has_pending, is_behind

STREAM = "document:7"


def facts(first: int, last: int) -> Facts:
    return Facts(first=first, items=tuple(raw({"seq": seq}) for seq in range(first, last + 1)))


def read(frame: Frame) -> Any:
    return json.loads(frame.payload)


class Database:
    """What was committed, in numbers only."""

    def __init__(self, head: int, version: int) -> None:
        self.head, self.version = head, version

    def open(self, after: int | None) -> Opening:
        head = Head(seq=self.head, version=self.version)
        state = Changed(version=self.version, state=raw({"version": self.version}))
        if after is not None and 0 <= self.head - after <= CATCH_UP:
            return Opening(head=head, events=(facts(after + 1, self.head), state))
        return Opening(head=head, snapshot=raw({"upto": self.head, "version": self.version}), events=(state,))


class Watcher:
    """A client that follows the contract and trusts it: each event must be the next one."""

    def __init__(self, frames: list[Frame]) -> None:
        self.seq = self.version = 0
        for frame in frames:
            self.hear(read(frame))

    def hear(self, frame: Any) -> None:
        match frame["type"]:
            case "snapshot":
                self.seq, self.version = frame["seq"], frame["state"]["version"]
            case "events":
                for event in frame["events"]:
                    assert event["seq"] == self.seq + 1
                    self.seq += 1
            case "state":
                assert frame["version"] >= self.version
                assert frame["state"]["version"] == frame["version"]
                self.version = frame["version"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(1, 4)),  # so many facts, published whole
        st.tuples(st.just("change"), st.just(0)),
        st.tuples(st.just("deliver"), st.integers(0, 5)),  # one of those in flight, in any order
        st.tuples(st.just("lose"), st.integers(0, 5)),
        st.tuples(st.just("double"), st.integers(0, 5)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("join"), st.integers(0, 9)),  # what was read may be so many steps old
        st.tuples(st.just("compare"), st.just(0)),
        st.tuples(st.just("grown"), st.just(0)),
    ),
    max_size=60,
)


@given(steps=steps, head=st.integers(0, 5))
def test_every_watcher_gets_everything_once_and_in_order(steps: list[tuple[str, int]], head: int) -> None:
    database, log = Database(head, 1), FactsLog(STREAM)
    log.start(database.open(None))
    watchers: list[Watcher] = []
    flying: list[Facts | Changed | Grown] = []
    read_before: list[Opening] = [database.open(None)]

    def flush() -> None:
        for frame, _ in log.flush({None}):
            for watcher in watchers:
                watcher.hear(read(frame))

    def catch_up() -> None:
        log.ask()
        opening = database.open(log.head.seq)
        assert opening.snapshot is None
        for event in opening.events:
            log.take(event)

    for step, number in steps:
        match step:
            case "commit":
                flying.append(facts(database.head + 1, database.head + number))
                database.head += number
            case "change":
                database.version += 1
                flying.append(Changed(version=database.version, state=raw({"version": database.version})))
            case "grown":
                database.head += 1
                flying.append(Grown())
            case "deliver" if flying:
                log.take(flying.pop(number % len(flying)))
            case "lose" if flying:
                flying.pop(number % len(flying))
            case "double" if flying:
                log.take(flying[number % len(flying)])
            case "flush":
                flush()
            case "join":
                opening = read_before[-1 - number % len(read_before)]
                frames = log.joining(opening)
                if frames is not None:
                    watchers.append(Watcher(frames))
                    assert watchers[-1].seq == log.sent.seq
                    assert watchers[-1].version >= log.sent.version
            case "compare" if log.is_incomplete or is_behind(log, Head(seq=database.head, version=database.version)):
                catch_up()
        read_before.append(database.open(None))

    if log.is_incomplete or is_behind(log, Head(seq=database.head, version=database.version)):
        catch_up()
    flush()
    assert not has_pending(log)
    frames = log.joining(database.open(None))
    assert frames is not None
    for watcher in [*watchers, Watcher(frames)]:
        assert (watcher.seq, watcher.version) == (database.head, database.version)


def test_a_gap_is_known_until_it_is_closed() -> None:
    log = FactsLog(STREAM)
    log.start(Database(3, 1).open(None))
    known = []
    for published in (facts(6, 7), facts(4, 4), facts(5, 5)):
        log.take(published)
        known.append((log.is_incomplete, log.head.seq))
    assert known == [(True, 3), (True, 4), (False, 7)]
    [(frame, audience)] = log.flush({None})
    assert ([event["seq"] for event in read(frame)["events"]], audience) == ([4, 5, 6, 7], None)


def test_what_is_read_too_long_ago_must_be_read_again() -> None:
    database, log = Database(0, 1), FactsLog(STREAM)
    old = database.open(None)
    log.start(old)
    log.take(facts(1, CATCH_UP + 1))
    log.flush({None})
    database.head = CATCH_UP + 1
    assert log.joining(old) is None
    assert log.joining(database.open(1)) is not None
    assert log.joining(Database(CATCH_UP + 2, 1).open(None)) is None  # ahead of what was framed: flush first


def test_large_events_are_parted_into_frames_a_browser_can_take() -> None:
    large = raw({"text": "x" * (LARGEST_PART // 2)})
    frames = events_frames(STREAM, [large, large, large])
    assert [len(read(frame)["events"]) for frame in frames] == [1, 1, 1]
    assert len(events_frames(STREAM, [raw(1)] * 1000)) == 1
    assert events_frames(STREAM, []) == []


def rows(version: int, *pairs: tuple[int, str]) -> Rows:
    return Rows(version=version, rows=tuple((root, raw({"root": root, "title": title})) for root, title in pairs))


def titles(frame: Frame) -> list[str]:
    return [row["title"] for row in read(frame)["rows"]]


def test_rows_are_framed_once_for_each_set_of_visible_roots() -> None:
    """R9: never another root's titles."""
    log = RowsLog("team")
    log.start(Opening(head=Head(seq=10)))
    log.take(rows(11, (1, "one"), (2, "two")))
    log.take(rows(12, (3, "three")))
    log.take(rows(12, (3, "again")))  # known already
    ones, others = frozenset({1, 3}), frozenset({4})
    addressed = log.flush({None, ones, others})
    found: dict[Sees, list[str]] = {}
    for frame, audience in addressed:
        assert audience is not None
        assert read(frame)["version"] == 12
        found |= {sees: titles(frame) for sees in audience}
    assert found == {None: ["one", "two", "three"], ones: ["one", "three"]}


def test_one_who_joins_the_board_gets_what_changed_since_it_was_read() -> None:
    log = RowsLog("team")
    log.start(Opening(head=Head(seq=10)))
    log.take(rows(11, (1, "one"), (2, "two")))
    log.flush({None})
    log.take(rows(12, (1, "pending")))
    opening = Opening(head=Head(seq=10), snapshot=raw({"rows": []}))
    frames = log.joining(opening, frozenset({2}))
    assert frames is not None
    assert titles(frames[1]) == ["two"]
    assert log.joining(Opening(head=Head(seq=9))) is None
    assert log.joining(Opening(head=Head(seq=12))) is None


def test_who_has_everything_hears_the_head() -> None:
    frames = Opening(head=Head(seq=7)).frames("team")
    assert [read(frame) for frame in frames] == [{"type": "heads", "heads": {"team": 7}}]

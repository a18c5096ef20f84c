"""The stream of a conversation over `/live/` (CONTRACT, WebSocket; R3)."""

import json
from typing import Any

import pytest

from console.access import Who
from console.crossing import crossed
from console.live import rounds
from console.live.conversations import ConversationSource
from console.live.logs import Opening
from lineage.access import conversation_for
from lineage.queries import entries_before, entries_json
from lineage.state import conversation_state
from tests.console.live.conftest import Connect
from tests.console.live.peers import Peer, seqs
from tests.factories import make_agent, make_root, say


@pytest.fixture
def wren(transactional_db: None) -> tuple[Who, str, int]:
    """An agent with its session: who, secret, conversation."""
    who, secret = make_agent(make_root(), "wren")
    assert who.conversation is not None
    return who, secret, who.conversation


type Wren = tuple[Who, str, int]


async def test_it_starts_with_a_snapshot_and_goes_on_with_events(wren: Wren, connect: Connect) -> None:
    who, secret, number = wren
    await crossed(say, who, number, "Cap the schedule", "Done.")
    peer = await connect(secret)
    snapshot = await peer.subscribe(f"conversation:{number}")
    assert (snapshot["type"], snapshot["seq"], snapshot["state"]["total"]) == ("snapshot", 3, 3)
    assert [entry["kind"] for entry in snapshot["state"]["entries"]] == ["user", "assistant", "turn_end"]
    assert snapshot["state"]["state"]["run"]["state"] == "idle"

    await crossed(say, who, number, "And the jitter?", end=False)
    events = await peer.hear_type("events")
    assert events["stream"] == f"conversation:{number}"
    assert seqs(events) == [4]
    assert events["events"][0]["model"][0]["content"] == "And the jitter?"
    state = await peer.hear_type("state")
    assert state["version"] > snapshot["state"]["version"]
    assert state["state"]["run"]["state"] == "running"


async def test_the_answer_names_the_protocol_and_never_the_token(wren: Wren, connect: Connect) -> None:
    peer = Peer(token=wren[1])
    assert await peer.connect() == (True, "console.v1")
    await peer.leave()


async def test_after_is_answered_with_events_and_the_state(wren: Wren, connect: Connect) -> None:
    who, secret, number = wren
    await crossed(say, who, number, "One", "Two", "Three")
    peer = await connect(secret)
    events = await peer.subscribe(f"conversation:{number}", after=1)
    assert (events["type"], seqs(events)) == ("events", [2, 3, 4])
    assert (await peer.hear_type("state"))["state"]["run"]["state"] == "idle"
    await crossed(say, who, number, "Four", end=False)
    assert seqs(await peer.hear_type("events")) == [5]


async def test_after_above_the_head_or_too_old_is_answered_with_a_snapshot(
    wren: Wren, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    who, secret, number = wren
    monkeypatch.setattr("console.live.conversations.CATCH_UP", 3)
    await crossed(say, who, number, "One", "Two", "Three", "Four")  # 5 entries
    peer = await connect(secret)
    stream = f"conversation:{number}"
    assert (await peer.subscribe(stream, after=6))["type"] == "snapshot"
    assert (await peer.subscribe(stream, after=1))["type"] == "snapshot"
    assert (await peer.subscribe(stream, after=2))["type"] == "events"


async def test_who_has_everything_still_gets_an_answer(wren: Wren, connect: Connect) -> None:
    who, secret, number = wren
    await crossed(say, who, number, "One")
    peer = await connect(secret)
    assert (await peer.subscribe(f"conversation:{number}", after=2))["type"] == "state"


async def test_the_snapshot_is_the_newest_fifty(wren: Wren, connect: Connect) -> None:
    who, secret, number = wren
    await crossed(say, who, number, *(f"line {n}" for n in range(59)))
    peer = await connect(secret)
    state = (await peer.subscribe(f"conversation:{number}"))["state"]
    assert [entry["seq"] for entry in state["entries"]] == list(range(11, 61))
    assert state["total"] == 60


async def test_a_snapshot_of_huge_entries_is_bounded_and_says_so(
    wren: Wren, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    who, secret, number = wren
    monkeypatch.setattr("console.live.conversations.SNAPSHOT_BYTES", 2_000)
    await crossed(say, who, number, *("x" * 600 for _ in range(9)))
    peer = await connect(secret)
    state = (await peer.subscribe(f"conversation:{number}"))["state"]
    assert [entry["seq"] for entry in state["entries"]] == [9, 10] or state["entries"][-1]["seq"] == 10
    assert len(state["entries"]) < 10
    assert state["total"] == 10


async def test_state_before_plus_events_is_the_state_read_afresh(wren: Wren, connect: Connect) -> None:
    """STYLE 24: the replay test, over the socket."""
    who, secret, number = wren
    await crossed(say, who, number, "One", "Two")
    peer = await connect(secret)
    snapshot = (await peer.subscribe(f"conversation:{number}"))["state"]
    entries, state, version = snapshot["entries"], snapshot["state"], snapshot["version"]
    for n in range(5):
        await crossed(say, who, number, f"ask {n}", f"answer {n}", end=False)
        await crossed(say, who, number, f"more {n}")

    def afresh() -> tuple[Any, Any, int]:
        row = conversation_for(who, number)
        read = [json.loads(bytes(entry)) for entry in entries_json(entries_before(row, limit=1000))]
        return read, conversation_state(row), row.state_version

    wanted = await crossed(afresh)
    assert (len(wanted[0]), wanted[2]) == (23, version + 10)
    while len(entries) < 23 or version < wanted[2]:
        frame = await peer.hear()
        if frame["type"] == "events":
            entries += frame["events"]
        elif frame["type"] == "state":
            assert frame["version"] > version
            version, state = frame["version"], frame["state"]
    assert (entries, state, version) == wanted


async def test_unsubscribed_is_silent(wren: Wren, connect: Connect) -> None:
    who, secret, number = wren
    peer, other = await connect(secret), await connect(secret)
    for each in (peer, other):
        await each.subscribe(f"conversation:{number}")
    await peer.say(op="unsubscribe", stream=f"conversation:{number}")
    await peer.say(op="dance")
    assert (await peer.hear())["error"]["code"] == "not_understood"  # so it was taken in order
    await crossed(say, who, number, "One")
    await other.hear_type("events")
    await peer.say(op="dance")
    await peer.hear_type("error")
    assert not [frame for frame in peer.heard if frame["type"] in {"events", "state"}]


async def test_absent_and_not_yours_look_the_same(wren: Wren, connect: Connect) -> None:
    """R7."""
    _, secret, number = wren
    theirs, _ = await crossed(make_agent, await crossed(make_root))
    peer = await connect(secret)
    refusals = []
    for other in (theirs.conversation, 999_999):
        frame = await peer.subscribe(f"conversation:{other}")
        refusals.append((frame["type"], frame["error"]["code"], frame["error"]["message"].replace(str(other), "N")))
    assert refusals[0] == refusals[1]
    assert refusals[0][:2] == ("error", "not_found")
    assert (await peer.subscribe(f"conversation:{number}"))["type"] == "snapshot"  # the socket stays


NOT_UNDERSTOOD = (
    " ",
    "nonsense",
    "[]",
    '"text"',
    "{}",
    '{"op":"dance"}',
    '{"op":"subscribe"}',
    '{"op":"subscribe","stream":7}',
    '{"op":"subscribe","stream":"team","after":"1"}',
    "[" * 5000,
)
NO_STREAMS = ("conversation:0", "conversation:x", "conversation:1\n", "teams", "", "\ud800", "x" * 9999)


async def test_what_is_not_understood_is_answered_and_the_socket_stays(wren: Wren, connect: Connect) -> None:
    peer = await connect(wren[1])
    for text in NOT_UNDERSTOOD:
        await peer.say_raw(text)
        frame = await peer.hear()
        assert (frame["type"], frame["error"]["code"]) == ("error", "not_understood"), text
    for stream in NO_STREAMS:
        await peer.say(op="subscribe", stream=stream)
        frame = await peer.hear()
        assert (frame["type"], frame["error"]["code"]) == ("error", "invalid"), stream
        assert len(frame["stream"]) <= 80
        assert len(frame["error"]["message"]) < 300
    assert (await peer.subscribe(f"conversation:{wren[2]}"))["type"] == "snapshot"


async def test_those_who_come_together_share_one_snapshot(
    wren: Wren, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D16: after a restart everybody comes back at once. What was committed before one asked is always in it."""
    who, secret, number = wren
    await crossed(say, who, number, "One")
    read: list[int | None] = []
    read_really = ConversationSource.open

    def counted(self: ConversationSource, who: Who | None, number: int, after: int | None) -> Opening:
        read.append(after)
        return read_really(self, who, number, after)

    monkeypatch.setattr(ConversationSource, "open", counted)
    monkeypatch.setattr(rounds, "COMPARE_AWAY_S", 3600.0)
    peers = [await connect(secret) for _ in range(5)]
    for peer in peers:
        assert (await peer.subscribe(f"conversation:{number}"))["seq"] == 2
    assert read == [None, None]  # the hub's own, and one for all five
    await crossed(say, who, number, "Two", end=False)
    late = await connect(secret)
    snapshot = await late.subscribe(f"conversation:{number}")
    assert (snapshot["seq"], snapshot["state"]["state"]["run"]["state"]) == (3, "running")

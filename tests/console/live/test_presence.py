"""Presence over `/live/` (D17, CONTRACT)."""

import asyncio
import json
from typing import Any

import pytest

from console import crossing
from console.access import Who
from console.live import presence
from console.live.frames import framed
from console.live.hub import Hub, hub
from console.live.operations import Presence
from console.live.outlets import SendOutlet
from console.wire import WRITE_LIMIT
from tests.console.live.conftest import Connect
from tests.console.live.peers import Peer, Wire
from tests.factories import make_agent, make_document, make_root

type Shared = tuple[Who, str, int]


@pytest.fixture
def shared(transactional_db: None) -> Shared:
    who, secret = make_agent(make_root(), "wren")
    assert who.root is not None
    return who, secret, make_document(who, who.root).pk


async def watch(shared: Shared, connect: Connect) -> tuple[Peer, str]:
    """A watcher of the document, and the name of its connection."""
    peer = await connect(shared[1])
    await peer.subscribe(f"document:{shared[2]}")
    told = await peer.hear_type("presence")
    return peer, told["you"]


def is_at(connection: str, anchor: int | None) -> Any:
    """A frame that says so of that connection."""
    return lambda frame: (
        frame["type"] == "presence"
        and any(each["connection"] == connection and each["anchor"] == anchor for each in frame["people"])
    )


async def test_others_see_where_one_is_and_that_it_left(shared: Shared, connect: Connect) -> None:
    (one, me), (other, _) = await watch(shared, connect), await watch(shared, connect)
    await one.say(op="presence", document=shared[2], anchor=3, head=5, unit="utf16", revision=0)
    frame = await other.hear(wanted=is_at(me, 3))
    assert frame["document"] == shared[2]
    assert frame["readers"] == 1
    assert [each for each in frame["people"] if each["connection"] == me] == [
        {
            "connection": me,
            "who": {"id": shared[0].actor, "name": "wren", "kind": "agent"},
            "anchor": 3,
            "head": 5,
            "unit": "utf16",
            "revision": 0,
        }
    ]
    await one.hear(wanted=is_at(me, 3))  # its author too
    await one.say(op="presence", document=shared[2], anchor=None)
    assert (await other.hear(wanted=is_at(me, None)))["readers"] == 2


async def test_one_who_joins_hears_who_is_there(shared: Shared, connect: Connect) -> None:
    one, me = await watch(shared, connect)
    await one.say(op="presence", document=shared[2], anchor=4)
    await one.hear(wanted=is_at(me, 4))
    late = await connect(shared[1])
    await late.subscribe(f"document:{shared[2]}")
    told = await late.hear_type("presence")
    assert [each["connection"] for each in told["people"]] == [me]


@pytest.mark.parametrize("how", ["unsubscribe", "disconnect"])
async def test_one_who_goes_is_gone(how: str, shared: Shared, connect: Connect) -> None:
    (one, me), (other, _) = await watch(shared, connect), await watch(shared, connect)
    await one.say(op="presence", document=shared[2], anchor=4)
    await other.hear(wanted=is_at(me, 4))
    if how == "unsubscribe":
        await one.say(op="unsubscribe", stream=f"document:{shared[2]}")
    else:
        await one.leave()
    await other.hear(wanted=is_at(me, None))


async def test_a_flood_is_merged_and_its_last_word_arrives(shared: Shared, connect: Connect) -> None:
    (one, me), (other, _) = await watch(shared, connect), await watch(shared, connect)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for anchor in range(200):
        await one.say(op="presence", document=shared[2], anchor=anchor)
    await other.hear(wanted=is_at(me, 199))
    frames = [frame for frame in other.heard if frame["type"] == "presence"]
    assert len(frames) <= 3 + (loop.time() - began) / presence.MERGE_S


async def test_one_who_reads_slowly_is_told_anew_and_needs_no_snapshot(shared: Shared, connect: Connect) -> None:
    """Else a long text would be sent again and again: while it is on its way, somebody's cursor moves."""
    _, secret, document = shared
    wire = Wire()
    slow = await connect(secret, None, wire)
    await slow.subscribe(f"document:{document}")
    await slow.hear_type("presence")
    one, me = await watch(shared, connect)
    wire.reads = False
    wire.write(framed({"type": "long", "text": "x" * WRITE_LIMIT}).wire)
    await one.say(op="presence", document=document, anchor=3)
    await one.hear(wanted=is_at(me, 3))  # and with that the slow one has missed it
    assert wire.buffered() < 2 * WRITE_LIMIT
    wire.reads = True
    wire.drain()
    told = await slow.hear(wanted=is_at(me, 3))
    assert told["you"] != me
    assert [frame["type"] for frame in slow.heard].count("snapshot") == 1


async def test_presence_needs_a_subscription(shared: Shared, connect: Connect) -> None:
    peer = await connect(shared[1])
    await peer.say(op="presence", document=shared[2], anchor=4)
    frame = await peer.hear()
    assert (frame["type"], frame["error"]["code"]) == ("error", "not_subscribed")


@pytest.mark.parametrize("anchor", [-1, 2**32, "4", 1.5])
async def test_what_is_no_place_is_not_understood(anchor: Any, shared: Shared, connect: Connect) -> None:
    peer, _ = await watch(shared, connect)
    await peer.say(op="presence", document=shared[2], anchor=anchor)
    assert (await peer.hear_type("error"))["error"]["code"] == "not_understood"


class Elsewhere:
    """The hub of another process, with one socket."""

    def __init__(self, who: Who) -> None:
        self.hub = Hub()
        self.frames: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.socket = self.hub.enter(SendOutlet(self._send), who, None)

    async def _send(self, message: dict[str, Any]) -> None:
        self.frames.put_nowait(json.loads(message["text"]))

    async def hear(self, wanted: Any) -> dict[str, Any]:
        async with asyncio.timeout(10):
            while True:
                frame = await self.frames.get()
                if wanted(frame):
                    return frame


async def test_people_of_other_processes_are_seen(
    shared: Shared, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "SIGN_S", 3600.0)  # not by the announcement that comes again and again
    one, me = await watch(shared, connect)
    await hub().relay.answers.wait()
    await one.say(op="presence", document=shared[2], anchor=4)
    await one.hear(wanted=is_at(me, 4))
    other = Elsewhere(shared[0])
    try:
        await other.hub.relay.answers.wait()
        await other.hub.subscribe(other.socket, f"document:{shared[2]}", None)
        await other.hear(is_at(me, 4))  # it asked
        place = Presence(document=shared[2], anchor=8)
        other.hub.crowds.show(other.socket, place)
        frame = await one.hear(wanted=is_at(other.socket.connection, 8))
        assert frame["readers"] == 0
        other.hub.leave(other.socket)
        await one.hear(wanted=is_at(other.socket.connection, None))
    finally:
        await other.hub.stop()


async def test_presence_asks_no_database(shared: Shared, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    (one, me), (other, _) = await watch(shared, connect), await watch(shared, connect)

    def no_crossing(*_: Any) -> None:
        raise AssertionError("presence crossed to a thread")

    monkeypatch.setattr(crossing._executor, "submit", no_crossing)
    await one.say(op="presence", document=shared[2], anchor=4)
    await other.hear(wanted=is_at(me, 4))


async def test_that_it_goes_on_without_valkey(shared: Shared, connect: Connect, valkey: Any) -> None:
    (one, me), (other, _) = await watch(shared, connect), await watch(shared, connect)
    valkey.kill()
    await one.say(op="presence", document=shared[2], anchor=4)
    await other.hear(wanted=is_at(me, 4))

"""One that does not read is passed over, bounded, and brought back by one snapshot; others never notice (D16)."""

import asyncio
from typing import Any

import pytest

from console.access import Who
from console.crossing import crossed
from console.live import outlets
from console.live.frames import Frame, framed
from console.live.hub import hub
from console.live.outlets import SendOutlet, WireOutlet
from console.live.refusals import TOO_SLOW
from console.wire import WRITE_LIMIT
from tests.console.live.conftest import Connect
from tests.console.live.peers import Peer, Wire, seqs
from tests.factories import make_agent, make_root, say

type Wren = tuple[Who, str, int]

LARGE = "x" * (WRITE_LIMIT // 4)


@pytest.fixture
def wren(transactional_db: None) -> Wren:
    who, secret = make_agent(make_root(), "wren")
    assert who.conversation is not None
    return who, secret, who.conversation


async def hear_up_to(peer: Peer, seq: int) -> list[int]:
    heard: list[int] = []
    while not heard or heard[-1] < seq:
        heard += seqs(await peer.hear_type("events"))
    return heard


async def test_one_that_does_not_read_gets_one_snapshot_when_it_has_drained(wren: Wren, connect: Connect) -> None:
    who, secret, number = wren
    wire = Wire()
    slow, quick = await connect(secret, None, wire), await connect(secret)
    for peer in (slow, quick):
        await peer.subscribe(f"conversation:{number}")
    await hub().relay.answers.wait()
    wire.reads = False
    for _ in range(12):
        await crossed(say, who, number, LARGE, end=False)
    assert await hear_up_to(quick, 12) == list(range(1, 13))
    assert wire.buffered() < 2 * WRITE_LIMIT  # bounded
    (subscription,) = (s for socket in hub().sockets for s in socket.subscriptions.values() if s.stale)
    assert subscription.stale

    wire.reads = True
    wire.drain()
    early = await slow.hear_type("snapshot")
    first = [seq for frame in slow.heard if frame["type"] == "events" for seq in seqs(frame)]
    assert first == list(range(1, len(first) + 1))
    assert len(first) < 12
    assert (early["seq"], early["state"]["entries"][-1]["seq"]) == (12, 12)
    await crossed(say, who, number, "small", end=False)
    assert await hear_up_to(slow, 13) == [13]
    assert [frame["type"] for frame in slow.heard].count("snapshot") == 2  # the first, and this one


async def test_what_is_written_after_a_snapshot_never_overtakes_it(wren: Wren, connect: Connect) -> None:
    """A snapshot longer than any buffer, and events committed while it is read and sent."""
    who, secret, number = wren
    await crossed(say, who, number, *([LARGE] * 9), end=False)
    peers = [await connect(secret, None, Wire()) for _ in range(5)]
    await asyncio.gather(
        *(peer.say(op="subscribe", stream=f"conversation:{number}") for peer in peers),
        *(crossed(say, who, number, f"meanwhile {n}", end=False) for n in range(10)),
    )
    for peer in peers:
        seq = (await peer.hear_type("snapshot"))["seq"]
        assert not [frame for frame in peer.heard if frame["type"] == "events"]
        if seq < 19:
            assert await hear_up_to(peer, 19) == list(range(seq + 1, 20))


async def test_one_that_asks_and_does_not_read_is_closed(
    wren: Wren, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlets, "REPLY_LIMIT", 10_000)
    who, secret, number = wren
    await crossed(say, who, number, LARGE)
    wire = Wire()
    wire.reads = False
    peer = await connect(secret, None, wire)
    for _ in range(8):
        await peer.say(op="subscribe", stream=f"conversation:{number}")
    assert await peer.hear_close() == TOO_SLOW
    assert not hub().sockets


def frame(size: int) -> Frame:
    return framed({"text": "x" * size})


async def test_a_server_that_makes_senders_wait_holds_up_one_queue() -> None:
    gate = asyncio.Event()
    sent: list[int] = []
    both = asyncio.Event()

    async def send(message: dict[str, Any]) -> None:
        await gate.wait()
        sent.append(len(message["text"]))
        if len(sent) == 2:
            both.set()

    outlet = SendOutlet(send)
    assert outlet.offer(frame(WRITE_LIMIT))
    assert not outlet.offer(frame(1))
    assert outlet.unsent() > WRITE_LIMIT
    assert outlet.reply(frame(2))  # an answer is not dropped
    gate.set()
    await both.wait()
    assert sent == [len(frame(WRITE_LIMIT)), len(frame(2))]
    assert outlet.offer(frame(3))
    assert sent[-1] == len(frame(3))  # gone when `offer` returns: this server does not make it wait


async def test_a_connection_that_is_gone_is_no_error() -> None:
    async def send(message: dict[str, Any]) -> None:
        raise RuntimeError("the server's own way to say so")

    outlet = SendOutlet(send)
    assert outlet.offer(frame(1))
    assert outlet.reply(frame(1))


async def test_what_the_wire_refuses_and_must_arrive_is_sent() -> None:
    sent: list[str] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["text"])

    outlet = WireOutlet(send, write=lambda data: False, buffered=lambda: 0)
    assert not outlet.offer(frame(1))
    assert outlet.reply(frame(1))
    assert sent == ['{"text":"x"}']


async def test_a_frame_is_made_once() -> None:
    made = frame(70_000)
    assert made.wire is made.wire
    assert made.message is made.message
    assert made.wire[:2] == b"\x81\x7f"
    assert made.wire[10:] == made.payload

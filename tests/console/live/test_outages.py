"""Valkey dies, hangs, comes back (R2): watchers get everything all the same, and nobody has to restart anything."""

import asyncio
from typing import Any

import pytest
from channels.layers import get_channel_layer

from console.access import Who
from console.crossing import crossed
from console.live import publishing, relay, rounds
from console.live.hub import hub
from tests.console.live.conftest import Connect, Valkey
from tests.console.live.peers import Peer, seqs
from tests.factories import make_agent, make_root, say

type Wren = tuple[Who, str, int]


@pytest.fixture
def wren(transactional_db: None) -> Wren:
    who, secret = make_agent(make_root(), "wren")
    assert who.conversation is not None
    return who, secret, who.conversation


async def watch(wren: Wren, connect: Connect) -> Peer:
    peer = await connect(wren[1])
    await peer.subscribe(f"conversation:{wren[2]}")
    await hub().relay.answers.wait()
    return peer


async def tell(wren: Wren, text: str) -> None:
    await crossed(say, wren[0], wren[2], text, end=False)


def never_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the fan-out brings news."""
    monkeypatch.setattr(rounds, "COMPARE_AWAY_S", 3600.0)


async def test_without_valkey_the_database_is_asked(valkey: Valkey, wren: Wren, connect: Connect) -> None:
    peer = await watch(wren, connect)
    valkey.kill()
    await tell(wren, "One")
    assert seqs(await peer.hear_type("events")) == [1]
    await tell(wren, "Two")
    assert seqs(await peer.hear_type("events")) == [2]
    assert not hub().relay.answers.is_set()


async def test_one_can_subscribe_without_valkey(valkey: Valkey, wren: Wren, connect: Connect) -> None:
    valkey.kill()
    peer = await connect(wren[1])
    assert (await peer.subscribe(f"conversation:{wren[2]}"))["type"] == "snapshot"
    await tell(wren, "One")
    assert seqs(await peer.hear_type("events")) == [1]


@pytest.mark.parametrize("began_away", [False, True])
async def test_it_comes_back_by_itself(
    began_away: bool, valkey: Valkey, wren: Wren, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_compare(monkeypatch)
    if began_away:
        valkey.kill()
        peer = await connect(wren[1])
        await peer.subscribe(f"conversation:{wren[2]}")
    else:
        peer = await watch(wren, connect)
        valkey.kill()
        await hub().relay.lost.wait()
    valkey.start()
    publishing.forget_failures()
    async with asyncio.timeout(10):
        await hub().relay.answers.wait()
        await asyncio.gather(*hub().relay._tasks)
    assert hub().relay.is_away  # writers may still pause: heads go on being compared
    await tell(wren, "One")
    assert seqs(await peer.hear_type("events")) == [1]


async def test_a_silent_valkey_is_noticed(valkey: Valkey, wren: Wren, connect: Connect) -> None:
    peer = await watch(wren, connect)
    valkey.hang()
    await tell(wren, "One")
    assert seqs(await peer.hear_type("events")) == [1]
    other, secret = await crossed(make_agent, await crossed(make_root))
    newcomer = await connect(secret)
    assert (await newcomer.subscribe(f"conversation:{other.conversation}"))["type"] == "snapshot"
    valkey.resume()


async def test_a_receiver_that_ended_is_replaced(
    valkey: Valkey, wren: Wren, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "DEAF", 1)
    never_compare(monkeypatch)
    peer = await watch(wren, connect)
    layer: Any = get_channel_layer()._get_layer()  # type: ignore[no-untyped-call]
    layer._shards[0]._receive_task.cancel()
    await hub().relay.lost.wait()
    async with asyncio.timeout(10):
        await hub().relay.answers.wait()
        await asyncio.gather(*hub().relay._tasks)
    await tell(wren, "One")
    assert seqs(await peer.hear_type("events")) == [1]


async def test_idle_subscribers_have_no_time_limit(valkey: Valkey, wren: Wren, connect: Connect) -> None:
    """redis-py gives every connection 5 s by default, after which an idle one is an error (DESIGN 12)."""
    await watch(wren, connect)
    layer: Any = get_channel_layer()._get_layer()  # type: ignore[no-untyped-call]
    assert layer._shards[0]._pubsub.connection.socket_timeout is None


async def test_a_lost_message_is_noticed_by_comparing(
    wren: Wren, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "COMPARE_S", 0.5)
    peer = await watch(wren, connect)
    monkeypatch.setattr(publishing, "publish", lambda stream, event: None)
    await tell(wren, "One")
    assert seqs(await peer.hear_type("events")) == [1]


async def test_a_gap_is_closed_from_the_database_at_once(
    wren: Wren, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_compare(monkeypatch)
    peer = await watch(wren, connect)
    with monkeypatch.context() as silent:
        silent.setattr(publishing, "publish", lambda stream, event: None)
        await tell(wren, "One")
    await tell(wren, "Two")
    heard = seqs(await peer.hear_type("events"))
    while len(heard) < 2:
        heard += seqs(await peer.hear_type("events"))
    assert heard == [1, 2]


async def test_what_was_too_large_to_carry_is_read(
    wren: Wren, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_compare(monkeypatch)
    monkeypatch.setattr(publishing, "LARGEST_EVENT", 10)
    peer = await watch(wren, connect)
    await tell(wren, "One")
    assert seqs(await peer.hear_type("events")) == [1]
    assert (await peer.hear_type("state"))["state"]["run"]["state"] == "running"


async def test_who_missed_more_than_a_catch_up_gets_a_snapshot(
    wren: Wren, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "COMPARE_S", 0.5)
    monkeypatch.setattr("console.live.conversations.CATCH_UP", 3)
    peer = await watch(wren, connect)
    monkeypatch.setattr(publishing, "publish", lambda stream, event: None)
    await crossed(say, wren[0], wren[2], "1", "2", "3", "4", "5")
    snapshot = await peer.hear_type("snapshot")
    assert (snapshot["seq"], len(snapshot["state"]["entries"])) == (6, 6)


async def test_heads_are_said_again_and_again(wren: Wren, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rounds.HEARTBEAT_S <= 20
    monkeypatch.setattr(rounds, "HEARTBEAT_S", 0.05)
    await tell(wren, "One")
    peer = await watch(wren, connect)
    stream = f"conversation:{wren[2]}"
    assert (await peer.hear_type("heads"))["heads"] == {stream: 1}
    await tell(wren, "Two")
    frame = await peer.hear(wanted=lambda f: f["type"] == "heads" and f["heads"][stream] == 2)
    kinds = [f["type"] for f in peer.heard]
    assert kinds.index("events") < len(kinds) - 1, frame

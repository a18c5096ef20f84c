"""The sending side (R2): what arrives, and what a Valkey that is away costs a writer."""

import time
from typing import Any

import msgspec
import pytest
from channels.layers import get_channel_layer

from console.events import AccessChanged, Changed, Event, Facts, Grown, Rows, Told, raw
from console.live import publishing
from tests.console.live.conftest import Valkey

LONE = msgspec.Raw(b'{"text":"\\ud800 \\u0000"}')
EVENTS: list[Event] = [
    Facts(first=7, items=(raw({"seq": 7, "text": "ä"}), LONE)),
    Changed(version=3, state=raw({"title": "T"})),
    Rows(version=9, rows=((1, raw({"root": 1})), (2, LONE))),
    AccessChanged(actor=5),
    Told(frame=raw({"type": "refusal"})),
    Grown(),
]


def plain(event: Event) -> Any:
    return publishing.packed(event)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_arrives_through_the_layer_as_it_was_sent(event: Event, valkey: Valkey) -> None:
    with valkey.client() as client, client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe("asgi__group__conversation.12")
        assert listener.get_message(timeout=5) is None  # the confirmation
        publishing.publish("conversation:12", event)
        sent = listener.get_message(timeout=5)
    assert sent is not None
    message = get_channel_layer().deserialize(sent["data"])  # type: ignore[no-untyped-call]
    assert (message["type"], message["stream"]) == ("stream.event", "conversation:12")
    assert plain(publishing.unpacked(message["event"])) == plain(event)


def test_many_events_arrive_in_order(valkey: Valkey) -> None:
    with valkey.client() as client, client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe("asgi__group__conversation.12")
        assert listener.get_message(timeout=5) is None  # the confirmation
        publishing.publish_each([("conversation:12", AccessChanged(actor=n)) for n in range(publishing.TOGETHER + 1)])
        sent = [listener.get_message(timeout=5) for _ in range(publishing.TOGETHER + 1)]
    messages = [get_channel_layer().deserialize(one["data"]) for one in sent if one]  # type: ignore[no-untyped-call]
    assert [one["event"] for one in messages] == [["access", n] for n in range(publishing.TOGETHER + 1)]


def test_what_is_too_large_is_only_pointed_at() -> None:
    large = msgspec.Raw(b'"' + b"x" * publishing.LARGEST_EVENT + b'"')
    small = msgspec.Raw(b'"' + b"x" * (publishing.LARGEST_EVENT - 2) + b'"')
    assert publishing.packed(Facts(first=1, items=(large,))) == ["grown"]
    assert publishing.packed(Changed(version=1, state=large)) == ["grown"]
    assert publishing.packed(Rows(version=1, rows=((1, large),))) == ["grown"]
    assert publishing.packed(Facts(first=1, items=(small,)))[0] == "facts"


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(ValueError, match="not an event"):
        publishing.unpacked(["facts", "7", []])


def seconds_to_publish() -> float:
    began = time.monotonic()
    publishing.publish("conversation:12", AccessChanged(actor=1))
    return time.monotonic() - began


def test_a_dead_valkey_costs_a_writer_next_to_nothing(valkey: Valkey) -> None:
    assert seconds_to_publish() < publishing.GIVE_UP_S
    valkey.kill()
    assert seconds_to_publish() < publishing.GIVE_UP_S + 0.1
    assert seconds_to_publish() < 0.01  # the pause: nobody tries
    valkey.start()


def test_a_silent_valkey_costs_a_writer_200_ms_once(valkey: Valkey) -> None:
    seconds_to_publish()
    valkey.hang()
    assert publishing.GIVE_UP_S <= seconds_to_publish() < publishing.GIVE_UP_S + 0.2
    assert seconds_to_publish() < 0.01
    valkey.resume()


def test_the_first_event_after_a_restart_is_not_lost(valkey: Valkey) -> None:
    """A pooled connection to the server before is noticed and replaced."""
    seconds_to_publish()
    valkey.kill()
    valkey.start()
    with valkey.client() as client, client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe("asgi__group__conversation.12")
        listener.get_message(timeout=5)
        seconds_to_publish()
        assert listener.get_message(timeout=5) is not None

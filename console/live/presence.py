"""Presence (D17): passed on and never stored. One merged frame a document each 200 ms, at once when it was quiet."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from console.errors import DomainError
from console.live.crowds import Crowd
from console.live.frames import framed
from console.live.operations import Presence

if TYPE_CHECKING:
    from console.live.hub import Hub, Socket

MERGE_S = 0.2  # a frame each so often at most: whatever a client sends, five a second go out
SIGN_S = 10.0  # the other processes hear from us so often; they forget us after three times that


class Crowds:
    """The crowds at the documents that sockets of this process watch."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._name = secrets.token_hex(6)
        self._crowds: dict[int, Crowd] = {}
        self._shown: dict[int, float] = {}  # when the last frame went out
        self._told: dict[int, dict[str, Any]] = {}  # what the other processes were told last
        self._due: set[int] = set()

    def join(self, socket: Socket, document: int) -> None:
        """A watcher joined, or was brought back: it hears who is there, and which connection it is itself."""
        crowd = self._crowds.get(document)
        if crowd is None:
            crowd = self._crowds[document] = Crowd()
            self._tell(document, crowd, asks=True)
        self._count(document, crowd)
        told = {"type": "presence", "document": document, "you": socket.connection, **crowd.whole()}
        self._hub.reply(socket, framed(told))

    def leave(self, socket: Socket, document: int) -> None:
        crowd = self._crowds.get(document)
        if crowd is not None:
            crowd.drop(socket.connection)
            self._count(document, crowd)

    def show(self, socket: Socket, presence: Presence) -> None:
        """Where a person is. Refusal: `not_subscribed`."""
        crowd = self._crowds.get(presence.document)
        if crowd is None or f"document:{presence.document}" not in socket.subscriptions:
            raise DomainError(
                "not_subscribed",
                f"Subscribe to document:{presence.document} first: presence is shown to those who watch it.",
                status=409,
            )
        person = {"connection": socket.connection, "who": socket.who.as_author(), **presence.place()}
        crowd.put(person, self._now())
        self._change(presence.document)

    def write(self, socket: Socket, document: int) -> None:
        """Its edit was recorded: it is one who writes."""
        crowd = self._crowds.get(document)
        if crowd is not None:
            crowd.write(socket.connection, self._now())
            self._change(document)

    def take(self, message: Mapping[str, Any]) -> None:
        """From another process, or our own words coming back."""
        crowd = self._crowds.get(message["document"])
        if crowd is None or message["hub"] == self._name:
            return
        crowd.take(message["hub"], message, self._now())
        if message["asks"]:
            self._tell(message["document"], crowd)
        self._change(message["document"])

    async def look_after(self) -> None:
        """Who gave no sign has left; the other processes get ours."""
        while True:
            await asyncio.sleep(SIGN_S)
            for document, crowd in list(self._crowds.items()):
                crowd.expire(self._now())
                self._change(document)
                self._tell(document, crowd)

    def _count(self, document: int, crowd: Crowd) -> None:
        stream = self._hub.streams.get(f"document:{document}")
        crowd.watchers = len(stream.watchers) if stream is not None else 0
        self._change(document)

    def _change(self, document: int) -> None:
        if document not in self._due:
            self._due.add(document)
            wait = self._shown.get(document, 0.0) + MERGE_S - self._now()
            asyncio.get_running_loop().call_later(max(0.0, wait), self._show, document)

    def _show(self, document: int) -> None:
        self._due.discard(document)
        crowd = self._crowds.get(document)
        if crowd is None:
            return
        news = crowd.news(self._now())
        if news is not None:
            self._hub.offer(f"document:{document}", framed({"type": "presence", "document": document, **news}))
        if crowd.message(self._now()) != self._told.get(document):
            self._tell(document, crowd)
        self._shown[document] = self._now()
        if not crowd.watchers:
            for known in (self._crowds, self._shown, self._told):
                known.pop(document, None)

    def _tell(self, document: int, crowd: Crowd, *, asks: bool = False) -> None:
        self._told[document] = crowd.message(self._now())
        head = {"type": "presence", "document": document, "hub": self._name, "asks": asks}
        self._hub.start(self._hub.relay.publish(f"document:{document}", head | self._told[document]))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

"""A real HTTP server of the Messages API for tests: fakellm, and a layer before it that makes what it cannot: errors at the status
line, streams that break off or stand still, other reasons to stop, usage of our own choosing."""

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import fakellm._state
import fakellm.server
import uvicorn
from fakellm.config import Config

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to one request. Without any of these it is answered by the rules."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    break_after: int | None = None  # events; then the connection closes
    hold_after: int | None = None  # events; then it stands still until `FakeModel.go` is set
    error_after: int | None = None  # events; then an `error` event ends the stream
    replace: tuple[tuple[str, str], ...] = ()  # in the text of events


@dataclass(kw_only=True)
class FakeModel:
    """The running server. `bodies` are the requests as they came in, `faults` what the next ones meet."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    held: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def rules(self, *rules: dict[str, Any]) -> None:
        """fakellm's rules: the first that fits answers. Its turns count from 1 again."""
        fakellm._state.reset()
        fakellm.server._config = Config.model_validate(
            {"rules": [{"name": f"r{n}", **rule} for n, rule in enumerate(rules)]}
        )

    def says(self, *texts: str) -> None:
        """Answer these texts, one per request, whatever is asked; the last one again and again."""
        self.rules(
            *({"when": {"turn": turn}, "respond": {"content": text}} for turn, text in enumerate(texts, 1)),
            {"respond": {"content": texts[-1]}},
        )

    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.bodies.append(body)
        fault = self.faults.popleft() if self.faults else Fault()
        if fault.status != 200:
            await _answer_error(fault, send)
            return
        events = 0
        told = False

        async def replay() -> MutableMapping[str, Any]:
            nonlocal told
            if told:
                return await receive()
            told = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def passed(message: MutableMapping[str, Any]) -> None:
            nonlocal events
            if message["type"] == "http.response.body" and message.get("body"):
                if fault.break_after == events:
                    raise _BreakOff
                if fault.error_after == events:
                    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
                    await send({**message, "body": f"event: error\ndata: {json.dumps(error)}\n\n".encode()})
                    raise _BreakOff
                if fault.hold_after == events:
                    self.held.set()
                    while not self.go.is_set():
                        await _breath()
                events += 1
                text = message["body"].decode()
                for old, new in fault.replace:
                    text = text.replace(old, new)
                message = {**message, "body": text.encode()}
            await send(message)

        with suppress(_BreakOff):  # an answer without its end: uvicorn closes the connection
            await fakellm.server.app(scope, replay, passed)


class _BreakOff(Exception):
    pass


async def _answer_error(fault: Fault, send: Send) -> None:
    error = json.dumps({"type": "error", "error": {"type": "made_error", "message": f"made {fault.status}"}})
    headers = [(b"content-type", b"application/json"), *((a.encode(), b.encode()) for a, b in fault.headers)]
    await send({"type": "http.response.start", "status": fault.status, "headers": headers})
    await send({"type": "http.response.body", "body": error.encode()})


async def _breath() -> None:
    await asyncio.sleep(0.01)


@contextmanager
def fake_model() -> Iterator[FakeModel]:
    """Start it on a free port of this machine; it ends with the block."""
    model = FakeModel()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        model.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(model, lifespan="off", ws="none", loop="asyncio", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="fake model")
        thread.start()
        try:
            yield model
        finally:
            model.go.set()
            server.should_exit = True
            server.force_exit = True
            thread.join(10)

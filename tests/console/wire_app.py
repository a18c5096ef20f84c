"""A little application on the console's own server, for the probes: `python -m tests.console.wire_app FD`.

A message `{"frames": [sizes], "send": [positions]}` is answered with numbered texts of these sizes, those at the
positions by `websocket.send`, the others by the direct road; `{"flood": MiB}` writes frames of 64 KiB until one is
refused or so many were taken, `{"waiting": name}` tells what is unsent to that client.
"""

import asyncio
import json
import sys
from typing import Any

from console.wire import BUFFERED, WRITE, text_frame

_buffered: dict[str, Any] = {}


def text(number: int, size: int) -> str:
    """A text of that many bytes at least, with characters of every UTF-8 length."""
    head = f"{number}:"
    return head + "aäß€𝄞"[number % 5] * max(0, size - len(head))


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": f"{scope['root_path']}|{scope['path']}".encode()})
        return
    write = scope[WRITE]
    name = scope["path"].strip("/")
    _buffered[name] = scope[BUFFERED]
    while (message := await receive())["type"] != "websocket.disconnect":
        if message["type"] == "websocket.connect":
            refused = not write(text_frame(b"early"))  # a socket that is not open yet takes nothing
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": json.dumps({"refused": refused})})
            continue
        order = json.loads(message["text"])
        if "flood" in order:
            await send({"type": "websocket.send", "text": json.dumps(await flood(write, order["flood"]))})
        elif "waiting" in order:
            await send({"type": "websocket.send", "text": json.dumps(_buffered[order["waiting"]]())})
        elif "close" in order:
            write(text_frame(b"last"))
            await send({"type": "websocket.close", "code": order["close"]})
            assert not write(text_frame(b"late"))
        else:
            await answer(write, send, order)


async def answer(write: Any, send: Any, order: dict[str, Any]) -> None:
    for number, size in enumerate(order["frames"]):
        if number in order.get("send", []):
            await send({"type": "websocket.send", "text": text(number, size)})
        else:
            for _ in range(2_000):  # the client may be gone, or slow
                if write(text_frame(text(number, size).encode())):
                    break
                await asyncio.sleep(0.001)
        if number % 16 == 15:
            await asyncio.sleep(0)


async def flood(write: Any, mebibytes: int) -> dict[str, int]:
    frame = text_frame(b"x" * 65_536)
    taken = 0
    for _ in range(mebibytes * 16):
        if not write(frame):
            return {"taken": taken, "refused": 1}
        taken += 1
    return {"taken": taken, "refused": 0}


if __name__ == "__main__":
    from console.server import make_server

    make_server(application, int(sys.argv[1])).run()

"""The direct road to a socket that `console.server` offers to the application beside `websocket.send` (D16).

A WebSocket scope may have two more keys; an application that finds them missing sends with `websocket.send`:

* `console.write(frame: bytes) -> bool` writes one finished frame (`text_frame`) now, without waiting. False: it was
  not taken, because the socket is not open, sends a message of its own in pieces, or has more than `WRITE_LIMIT`
  bytes unsent; the caller marks such a watcher stale.
* `console.buffered() -> int` is the number of bytes that were taken and not yet handed to the kernel.

A frame that is written while an `await send(...)` waits overtakes it, so a snapshot and what follows it go the same
road. This module imports no server, so that the application stays neutral.
"""

from collections.abc import Callable

WRITE = "console.write"
BUFFERED = "console.buffered"
type Write = Callable[[bytes], bool]
type Buffered = Callable[[], int]

WRITE_LIMIT = 256 * 1024  # bytes unsent after which a watcher is stale (D16)
LARGEST_FRAME = (
    32 * 1024 * 1024
)  # bytes from a client; a larger frame closes the socket with 1009 (CONTRACT, WebSocket)
KERNEL_BUFFER = 256 * 1024  # bytes; without it the kernel takes up to 4 MB for each slow socket before we notice


def text_frame(payload: bytes) -> bytes:
    """One whole, unmasked, uncompressed text frame of UTF-8 bytes (RFC 6455, 5.2): the same for every receiver."""
    size = len(payload)
    if size < 126:
        return b"\x81" + bytes([size]) + payload
    if size < 1 << 16:
        return b"\x81\x7e" + size.to_bytes(2) + payload
    return b"\x81\x7f" + size.to_bytes(8) + payload

"""The live socket `/live/`: signs in, routes, calls one action per message. It decides nothing (R1, STYLE 7).

No consumer of Channels: those open a layer channel for each socket and hop threads for each message, and the hub needs
neither (D16).
"""

import logging
from typing import Any

from django.db import DatabaseError

from console.crossing import crossed
from console.errors import DomainError
from console.live.editing import answer_edit
from console.live.frames import error_frame, refused_frame
from console.live.hub import Hub, Socket, hub
from console.live.operations import EditDocument, EditNotUnderstood, Presence, Subscribe, Unsubscribe, read_operation
from console.live.outlets import Outlet, outlet_for
from console.live.refusals import FOREIGN, GONE, SIGNED_OUT, TOO_LARGE, TRY_LATER, UNAVAILABLE
from console.live.signing_in import is_foreign, offered, signed_in
from console.wire import LARGEST_FRAME

logger = logging.getLogger(__name__)


async def live(scope: Any, receive: Any, send: Any) -> None:
    """The ASGI application of one socket."""
    await receive()  # websocket.connect
    if is_foreign(scope):
        await send({"type": "websocket.close", "code": FOREIGN})  # before the handshake: 403
        return
    outlet = outlet_for(scope, send)
    await send({"type": "websocket.accept", "subprotocol": offered(scope)})
    try:
        entered = await crossed(signed_in, scope)
    except DatabaseError:
        await refuse(outlet, UNAVAILABLE, TRY_LATER)
        return
    if entered is None:
        await refuse(outlet, GONE[SIGNED_OUT], SIGNED_OUT)
        return
    here = hub()
    socket = here.enter(outlet, entered.who, entered.session)
    try:
        while (message := await receive())["type"] == "websocket.receive":
            await _take(here, socket, message.get("text"))
    finally:
        here.leave(socket)


async def refuse(outlet: Outlet, refusal: DomainError, code: int) -> None:
    """Say why, then close: a browser sees neither the status nor the body of a refused handshake."""
    outlet.reply(error_frame(refusal))
    await outlet.close(code)


async def _take(here: Hub, socket: Socket, text: str | None) -> None:
    if socket.closed is not None:
        return
    if text is not None and len(text) > LARGEST_FRAME:
        here.close(socket, TOO_LARGE)
        return
    stream: str | None = None
    try:
        operation = read_operation(text or "")
        match operation:
            case Subscribe():
                stream = operation.stream
                await here.subscribe(socket, stream, operation.after)
            case EditDocument():
                here.start(answer_edit(here, socket, operation))
            case Unsubscribe():
                here.unsubscribe(socket, operation.stream)
            case Presence():
                stream = f"document:{operation.document}"
                here.crowds.show(socket, operation)
    except EditNotUnderstood as refusal:
        here.reply(socket, refused_frame(refusal.request_id, refusal.document, refusal))
    except DomainError as refusal:
        here.reply(socket, error_frame(refusal, stream))
    except DatabaseError as error:
        logger.warning("A frame could not be answered: %s", error)
        here.reply(socket, error_frame(UNAVAILABLE, stream))

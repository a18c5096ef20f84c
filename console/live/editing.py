"""Edits that come over the socket: handed to the process's gatherer, answered after the commit (D10, D11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.errors import DomainError
from console.live.frames import Frame, accepted_frame, refused_frame
from console.live.operations import EditDocument
from console.live.refusals import UNAVAILABLE
from documents.gathering import gatherer

if TYPE_CHECKING:
    from console.live.hub import Hub, Socket


async def answer_edit(hub: Hub, socket: Socket, edit: EditDocument) -> None:
    """Record one batch with whatever else waits for the document. Started in the order of arrival, which it keeps."""
    frame = await _recorded(hub, socket, edit)
    if socket in hub.sockets:
        hub.reply(socket, frame)


async def _recorded(hub: Hub, socket: Socket, edit: EditDocument) -> Frame:
    try:
        accepted = await gatherer().edit(
            who=socket.who, document=edit.document, edits=edit.edits, request_id=edit.request_id
        )
    except DomainError as refusal:
        return refused_frame(edit.request_id, edit.document, refusal)
    except Exception:  # the gatherer has logged it. Whoever asked may send the same batch again (R4)
        return refused_frame(edit.request_id, edit.document, UNAVAILABLE)
    hub.crowds.write(socket, edit.document)
    return accepted_frame(edit.request_id, edit.document, accepted.document, accepted.revision)

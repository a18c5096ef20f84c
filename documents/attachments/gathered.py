"""The attachments of one model request, as rows and files have them now: texts within the budget, pictures whole (A1, D19)."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from documents.attachments.injection import Attached, inject, named
from documents.attachments.limits import PICTURE_BYTES
from documents.attachments.models import Attachment, AttachmentStatus
from documents.attachments.sidecar import open_sidecar
from documents.attachments.storing import attachments_folder

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What models take as an image, and what pages show as one."""


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """One attachment with the entry `seq` that brought it. `picture` is its file in base64, for a model that sees."""

    name: str
    seq: int
    media_type: str
    text: str
    line: str
    carried: int  # code points of it in `text`
    picture: str = ""


def gather(rows: Sequence[Attachment], *, pictures: int) -> list[Gathered]:
    """The attachments in the order given. Of pictures the newest are read, until they have `pictures` bytes in base64;
    the others are only named."""
    folder = attachments_folder()
    shown = _pictures(folder, rows, pictures)
    texts = [row for row in rows if row.name not in shown]
    injected = {found.name: found for found in inject([_attached(row) for row in texts], _reader(folder))}
    gathered = []
    for row in rows:
        found = injected.get(row.name)
        said = f"Attachment {named(_attached(row))}, a picture:" if found is None else found.text
        gathered.append(
            Gathered(
                name=row.name,
                seq=row.seq or 0,
                media_type=row.media_type,
                text=said,
                line=f"Attachment {named(_attached(row))}: a picture that is out of sight here."
                if found is None
                else found.line,
                carried=0 if found is None else found.carried,
                picture=shown.get(row.name, ""),
            )
        )
    return gathered


def _pictures(folder: Path, rows: Sequence[Attachment], room: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in reversed(rows):
        size = (row.size + 2) // 3 * 4
        if row.status == AttachmentStatus.PENDING or row.media_type not in PICTURES or row.size > PICTURE_BYTES:
            continue  # before it was looked into, only its name says that it is a picture
        if size > room:  # all older ones are left out too: what is seen is the newest, without gaps
            break
        try:
            found[row.name] = base64.b64encode((folder / row.name).read_bytes()).decode()
        except OSError:  # its file is gone, so it is named like one without text
            continue
        room -= size
    return found


def _reader(folder: Path) -> Callable[[str, int], str]:
    def read(name: str, limit: int) -> str:
        sidecar = open_sidecar(folder, name)
        return "" if sidecar is None else sidecar.read(0, limit)

    return read


def _attached(row: Attachment) -> Attached:
    return Attached(
        name=row.name,
        filename=row.filename,
        media_type=row.media_type,
        status=row.status,
        chars=row.chars,
        truncated=row.truncated,
        reason=row.reason or None,
    )

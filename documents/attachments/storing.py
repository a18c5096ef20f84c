"""The folder in which uploads and sidecars lie; several machines share it (D18)."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

from console.errors import TooLarge
from documents.attachments.limits import UPLOAD_BYTES
from documents.attachments.models import FolderMark
from documents.attachments.sidecar import sidecar_path

_MARK = ".shared"  # its content says whether two machines see one folder


def attachments_folder() -> Path:
    """The one folder, by one setting for writer and reader alike; made when it is missing."""
    folder = Path(settings.ATTACHMENTS_DIR)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def store_upload(name: str, chunks: Iterable[bytes]) -> int:
    """Write an upload under a temporary name, sync, rename; answers its size in bytes. Refusal: `attachment_too_large`."""
    folder = attachments_folder()
    draft, size = folder / f".{name}.{os.getpid()}", 0
    try:
        with draft.open("xb") as file:
            for chunk in chunks:
                size += len(chunk)
                refuse_too_large(size)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(folder / name)
    finally:
        draft.unlink(missing_ok=True)
    return size


def forget_upload(name: str) -> None:
    """Remove a stored file that no row names, and what was extracted from it."""
    folder = attachments_folder()
    (folder / name).unlink(missing_ok=True)
    sidecar_path(folder, name).unlink(missing_ok=True)


def refuse_too_large(size: int) -> None:
    """Refuse a file over the limit, before or while it is read."""
    if size > UPLOAD_BYTES:
        raise TooLarge(
            "attachment_too_large",
            f"The file has {size} bytes or more; an attachment has at most {UPLOAD_BYTES}.",
            limit=UPLOAD_BYTES,
            actual=size,
        )


def check_attachments() -> str:
    """Empty when this machine can write the folder that the others share, else a sentence for `/readyz` (D18)."""
    try:
        mark = folder_mark()
    except OSError as error:
        return f"The folder of attachments cannot be used: {error.strerror}."
    row, _ = FolderMark.objects.get_or_create(only=True, defaults={"mark": mark})
    return "" if row.mark == mark else "The folder of attachments is not the one that the other machines use."


def folder_mark() -> str:
    """A text that is the same on all machines exactly when they share the folder. Raises OSError when it cannot be written."""
    path = attachments_folder() / _MARK
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        draft = path.with_name(f"{_MARK}.{os.getpid()}.{secrets.token_hex(4)}")
        draft.write_text(secrets.token_hex(16), encoding="ascii")
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        return path.read_text(encoding="ascii")

"""Comparing attachments with the files of their folder: for `manage.py verify`. Reads only; bounded memory."""

from collections.abc import Iterator

from documents.attachments.models import Attachment, AttachmentStatus
from documents.attachments.sidecar import open_sidecar
from documents.attachments.storing import attachments_folder


def attachment_faults() -> Iterator[str]:
    """A sentence for each fault: a file or sidecar that is missing, or that is not what its row says (D18)."""
    for row in Attachment.objects.order_by("pk").iterator(chunk_size=500):
        yield from _faults_of(row)


def _faults_of(row: Attachment) -> Iterator[str]:
    name, folder = f"attachment {row.name}", attachments_folder()
    try:
        size = (folder / row.name).stat().st_size
    except FileNotFoundError:
        yield f"{name}: its file is missing"
    else:
        if size != row.size:
            yield f"{name}: its file has {size} bytes, and {row.size} are declared"
    if row.status == AttachmentStatus.PENDING:
        return
    sidecar = open_sidecar(folder, row.name)
    if sidecar is None:
        yield f"{name}: it is {row.status}, and its sidecar is missing"
    elif (sidecar.meta.status, sidecar.meta.chars) != (row.status, row.chars):
        yield (
            f"{name}: its sidecar is {sidecar.meta.status} with {sidecar.meta.chars} characters, "
            f"and the row says {row.status} with {row.chars}"
        )

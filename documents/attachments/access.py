"""The only door to attachments (R8, D21). A wrong name and somebody else's look the same."""

from typing import Any

from console.access import Who, role_in
from console.errors import NotFound
from documents.attachments.models import Attachment
from documents.attachments.names import is_issued
from documents.attachments.reading import Page, read_page
from documents.attachments.storing import attachments_folder


def attachment_for(who: Who, name: Any) -> Attachment:
    """The row of an issued name, trimmed, that `who` may read; never a path."""
    asked = str(name).strip()
    row = Attachment.objects.filter(name=asked).first() if is_issued(asked) else None
    if row is None or role_in(who, row.root_id) is None:
        raise NotFound("attachment", asked[:64])
    return row


def read_attachment(*, who: Who, name: Any, offset: Any = 0, limit: Any = None) -> Page:
    """A page of text, for HTTP, MCP and the tool alike. Access comes first, then the refusals of `read_page` (D20)."""
    return read_page(folder=attachments_folder(), name=attachment_for(who, name).name, offset=offset, limit=limit)

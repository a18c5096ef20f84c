"""Lists of documents for pages."""

from documents.models import Document

SHOWN = 20  # documents in a pane: the newest


def newest_documents(root: int) -> tuple[list[Document], int]:
    """The documents of a tree, the last made first, at most `SHOWN`, and how many there are."""
    rows = Document.objects.filter(root=root)
    return list(rows.order_by("-pk")[:SHOWN]), rows.count()

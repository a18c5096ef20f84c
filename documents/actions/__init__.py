"""Every change of a document."""

from documents.actions.batches import Accepted, Appended, NewBatch, OutcomeUnknown, append_batches
from documents.actions.documents import copy_document, create_document, rename_document
from documents.actions.editing import Asked, edit_document, edit_together, tend_document

__all__ = [
    "Accepted",
    "Appended",
    "Asked",
    "NewBatch",
    "OutcomeUnknown",
    "append_batches",
    "copy_document",
    "create_document",
    "edit_document",
    "edit_together",
    "rename_document",
    "tend_document",
]

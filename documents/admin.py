"""The administration of documents: every revision to look at, none to change."""

from typing import ClassVar

from django.contrib import admin
from django.utils.html import format_html

from console.reading_admin import ReadOnly, linked, register_rest
from documents.attachments.models import Attachment
from documents.models import Document, EditBatch


@admin.register(Document)
class DocumentAdmin(ReadOnly):
    list_display = ("title", "revision", "root_link", "conversation_link", "creator_link", "created", "page")
    list_filter = ("created",)
    list_select_related = ("root__conversation", "conversation", "creator")
    search_fields = ("title", "=id")
    ordering = ("-pk",)
    root_link = linked("root")
    conversation_link = linked("conversation")
    creator_link = linked("creator")

    @admin.display(description="page")
    def page(self, row: Document) -> str:
        return format_html('<a href="/documents/{}/">open</a>', row.pk)


@admin.register(EditBatch)
class EditBatchAdmin(ReadOnly):
    """Batches are immutable; a trigger refuses changes too."""

    list_display = ("document_link", "revision", "actor_link", "time", "request_id")
    list_filter = ("time",)
    list_select_related = ("document", "actor")
    search_fields = ("=document__id", "request_id")
    ordering = ("-pk",)
    long: ClassVar[tuple[str, ...]] = ("edits",)
    document_link = linked("document")
    actor_link = linked("actor")


@admin.register(Attachment)
class AttachmentAdmin(ReadOnly):
    list_display = (
        "filename",
        "media_type",
        "size",
        "status",
        "reason",
        "chars",
        "conversation_link",
        "created",
        "page",
    )
    list_filter = ("status", "truncated", "media_type", "created")
    list_select_related = ("conversation",)
    search_fields = ("filename", "name")
    ordering = ("-pk",)
    conversation_link = linked("conversation")

    @admin.display(description="page")
    def page(self, row: Attachment) -> str:
        return format_html('<a href="/attachments/{}/">open</a>', row.name)


register_rest("documents")

"""The documents app: live documents, the one applier, attachments."""

from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    name = "documents"

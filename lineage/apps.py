"""The lineage app: conversation trees, and what keeps them durable."""

from django.apps import AppConfig


class LineageConfig(AppConfig):
    name = "lineage"

    def ready(self) -> None:
        """Every process knows every kind of task, so that it can make them, workers run them (L9), and which conversations
        own documents."""
        from documents.owners import register_owners
        from lineage.owners import ConversationOwners
        from lineage.tasks import kinds  # all of these need the models, which are ready only now

        assert kinds
        register_owners(ConversationOwners())

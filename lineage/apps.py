"""The lineage app: conversation trees, and what keeps them durable."""

import gc

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
        # This app is the last to be made ready. What is loaded by now stays for the life of the process; walking all of it
        # took the garbage collector 100 ms, in the middle of a long context or of a finish that many are told.
        gc.freeze()

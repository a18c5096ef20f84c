"""The console app: core pieces that the others build on, and the entry points above them."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "console"

    def ready(self) -> None:
        from console import celery  # noqa: F401 - from here on `shared_task` means the console's own app
        from console.demo import acting  # noqa: F401 - workers know the demo's kind of task (L9)

"""`manage.py keeper`: the periodic work of the console, started by `up`."""

import signal
import threading
from typing import Any

from django.utils.module_loading import autodiscover_modules

from console.keeper import keep_until
from console.management.base import ConsoleCommand


class Command(ConsoleCommand):
    help = "Does the console's periodic work until it is stopped. Several may run: one of them works at a time."

    def handle(self, *args: Any, **options: Any) -> None:
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        autodiscover_modules("keepers")
        keep_until(stopped)

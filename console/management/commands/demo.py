"""`manage.py demo`: the sample tree, and a scripted run that plays into it. `up --demo` starts it."""

import signal
import threading
from typing import Any

from django.core.management.base import CommandParser

from console.demo.loading import demo_folder, load_demo
from console.demo.playing import LINE_SECONDS, play_when_seen
from console.management.base import ConsoleCommand
from lineage.transcripts.following import Follower, follow_until


class Command(ConsoleCommand):
    help = (
        "Load the sample tree, play one scripted run into it once somebody has signed in, and follow it until stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seconds", type=float, default=LINE_SECONDS, help="between two lines of the run")

    def handle(self, *args: Any, **options: Any) -> None:
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        demo = load_demo(demo_folder())
        player = threading.Thread(target=play_when_seen, args=(demo, stopped, options["seconds"]), name="player")
        player.start()
        follow_until(stopped, Follower([demo.transcripts], root=demo.root), lambda _: None)
        player.join()

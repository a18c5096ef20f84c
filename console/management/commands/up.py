"""`manage.py up`: everything, in one command."""

import os
import socket
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from django.core.management.base import CommandParser
from django.db import InterfaceError, OperationalError, connections
from rich.console import Console

from console import data, frontend
from console.actions.people import first_signin_link
from console.board.keeping import fold_touched
from console.demo.loading import demo_folder, load_demo
from console.embedded import CannotStart
from console.embedded.children import Child, last_lines
from console.embedded.locks import open_lock
from console.embedded.running import ENGINES_LOCK, UP_LOCK, check_reachable, embedded_engines, remove_socket_dir
from console.listening import address_of, bind, raise_open_files
from console.management.base import ConsoleCommand
from console.migrating import migrate_database
from console.processes import (
    MOST_PROCESSES,
    command_child,
    empty_counts,
    forget_process,
    keeper_child,
    watcher_child,
    web_children,
    worker_children,
)
from console.supervisor import Stop, Supervisor

READY_SECONDS = 120.0  # from the start of the web processes to the first answer
READY_LOOK = 0.05
PROBE_SECONDS = 5.0
EARLY_CRASHES = 3  # in a row before the first answer: it will not get better by itself


class Command(ConsoleCommand):
    help = "Starts the console and everything it needs, until Ctrl-C."
    migrates = False  # the engines start first

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="the address to serve on (default: 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="the port (default: 8000; 0 takes a free one)")
        parser.add_argument("--demo", action="store_true", help="load the sample tree and play a scripted run into it")
        parser.add_argument("--watch", metavar="DIR", action="append", default=[], help="follow the transcripts there")
        parser.add_argument("--web", metavar="N", type=int, default=1, help="web processes (default: 1)")
        parser.add_argument("--workers", metavar="N", type=int, default=1, help="worker processes (default: 1)")

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("web", "workers"):
            if not 0 <= options[name] <= MOST_PROCESSES:
                raise CannotStart(f"--{name} takes a number from 0 to {MOST_PROCESSES}, not {options[name]}.")
        directory = data.data_dir()
        supervisor = Supervisor(self.say, ended=lambda pid: forget_process(directory, pid))
        with ExitStack() as stack:
            up = stack.enter_context(open_lock(directory, UP_LOCK))
            if not up.take():
                raise CannotStart(
                    f"The console already runs on {directory} (process {up.holder()}): use that one, stop it, or choose "
                    "another data directory with --data."
                )
            try:
                self.serve(stack, supervisor, directory, options)
            except Stop:
                self.say("Stopping.")

    def serve(self, stack: ExitStack, supervisor: Supervisor, directory: Path, options: dict[str, Any]) -> None:
        """Everything in order, then looking after it until Stop."""
        raise_open_files()
        empty_counts(directory)
        listening = stack.enter_context(bind(options["host"], options["port"])) if options["web"] else None
        check_reachable()
        self.start_engines(stack, supervisor, directory)
        with self.step("Preparing the database"):
            migrate_database()
        self.build_front_end()
        if options["demo"]:
            with self.step("Loading the demo"):
                load_demo(demo_folder())
        with self.step("Bringing the board up to date"):
            while fold_touched():  # so that the first page shows what there is
                pass
        with self.step("Starting the console"):
            if listening is not None:
                for child in web_children(options["web"], listening.fileno(), allowed_hosts(options["host"])):
                    supervisor.start(child)
                wait_until_ready(supervisor, address_of(listening), directory)
        # Once the pages can be opened: all at once would make everybody wait for all.
        for child in background_children(options):
            supervisor.start(child)
        self.welcome(supervisor, listening)
        connections.close_all()
        while True:
            supervisor.watch(3600.0)

    def start_engines(self, stack: ExitStack, supervisor: Supervisor, directory: Path) -> None:
        """The embedded ones, under the lock that says who runs them; at the end everything stops, they last."""
        if data.has_own_database() or data.has_own_valkey():
            lock = stack.enter_context(open_lock(directory, ENGINES_LOCK))
            lock.wait(lambda: self.say(f"Waiting for the command (process {lock.holder()}) that uses {directory}."))
            stack.callback(remove_socket_dir, directory)
        names: set[str] = set()
        stack.callback(supervisor.stop, first=lambda name: name not in names)
        with self.step("Starting the engines"):
            for engine in embedded_engines(directory):
                names.add(engine.child.name)
                supervisor.adopt(engine.child, engine.start())

    def build_front_end(self) -> None:
        """Only when it is stale. Without the registry the console runs on with the last one that was built."""
        if not frontend.is_stale():
            return
        try:
            with self.step("Building the front end"):
                frontend.build()
        except frontend.FrontendError as error:
            self.say(f"{error} Until then documents cannot be edited in the browser, or only in an older editor.")

    def welcome(self, supervisor: Supervisor, listening: socket.socket | None) -> None:
        """The lines that people and scripts wait for."""
        if listening is None:
            print("Console ready: without web processes.", flush=True)
            return
        address = address_of(listening)
        data.remember_address(address)
        print(f"Console ready: {address}", flush=True)
        secret = self.first_link(supervisor)
        if secret is not None:
            print(f"Sign in once, within 24 hours: {address}signin/{secret}/", flush=True)

    def first_link(self, supervisor: Supervisor) -> str | None:
        """Also when PostgreSQL crashes at this moment: its supervisor brings it back."""
        while True:
            try:
                return first_signin_link()
            except (OperationalError, InterfaceError):
                connections.close_all()
                supervisor.watch(READY_LOOK)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """One line of progress: turning while it goes on, with its seconds afterwards."""
        terminal = Console(file=sys.stderr, highlight=False)
        began = monotonic()
        with terminal.status(what):
            yield
        self.say(f"{what}: {monotonic() - began:.1f} s")

    def say(self, sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)


def background_children(options: dict[str, Any]) -> list[Child]:
    """The console's own processes beside the web server."""
    children = [*worker_children(options["workers"]), keeper_child()]
    if options["watch"]:
        children.append(watcher_child(options["watch"]))
    if options["demo"]:
        children.append(command_child("demo", "demo"))
    return children


def wait_until_ready(supervisor: Supervisor, address: str, directory: Path) -> None:
    """Until /readyz answers; meanwhile the children are looked after. Raises CannotStart."""
    deadline = monotonic() + READY_SECONDS
    while not answers(f"{address}readyz"):
        supervisor.watch(READY_LOOK)
        if monotonic() > deadline or supervisor.crashes() >= EARLY_CRASHES:
            said = last_lines(directory / "logs" / "web-1.log")
            raise CannotStart(f"The web server does not get ready. The end of its log, in {directory}/logs:\n{said}")


def answers(url: str) -> bool:
    """Whether that URL is answered with 200."""
    # Straight there: a proxy of the environment knows nothing of this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=PROBE_SECONDS) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def allowed_hosts(host: str) -> dict[str, str]:
    """Django answers only under names it knows; the address that was asked for is one of them."""
    if os.environ.get("ALLOWED_HOSTS") or host in {"127.0.0.1", "localhost", "::1"}:
        return {}
    return {"ALLOWED_HOSTS": f"localhost,127.0.0.1,[::1],{f'[{host}]' if ':' in host else host}"}

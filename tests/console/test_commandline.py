"""What happens before Django, and what every command shares."""

import os
import resource
import socket
import subprocess
import sys
from typing import Any

import pytest
from django.core.management import call_command, load_command_class

from console.commandline import take_data_option, wants_engines
from console.data import CHECKOUT
from console.embedded import CannotStart
from console.embedded.running import check_urls
from console.errors import NotFound
from console.listening import OPEN_FILES, address_of, bind, raise_open_files
from console.management.base import ConsoleCommand
from console.management.commands.up import allowed_hosts


@pytest.mark.parametrize(
    ("words", "kept", "directory"),
    [
        (["up", "--data", "d", "--port", "0"], ["up", "--port", "0"], "d"),
        (["--data=d", "token", "wren"], ["token", "wren"], "d"),
        (["up", "--data", "first", "--data=d"], ["up"], "d"),
        (["import", "--", "--data", "x"], ["import", "--", "--data", "x"], "before"),
        (["up", "--database"], ["up", "--database"], "before"),
    ],
)
def test_data_takes_effect_before_the_settings(
    words: list[str], kept: list[str], directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSOLE_DATA", "before")
    assert take_data_option(words) == kept
    assert os.environ["CONSOLE_DATA"] == directory


@pytest.mark.parametrize("words", [["up", "--data"], ["up", "--data="]])
def test_data_wants_a_directory(words: list[str]) -> None:
    with pytest.raises(CannotStart, match=r"^--data needs a directory"):
        take_data_option(words)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["manage.py"], False),
        (["manage.py", "--help"], False),
        (["manage.py", "up"], False),
        (["manage.py", "check", "--deploy"], False),
        (["manage.py", "token", "--help"], False),
        (["manage.py", "token", "wren"], True),
        (["manage.py", "migrate"], True),
    ],
)
def test_engines_start_for_commands_that_ask_the_database(words: list[str], wanted: bool) -> None:
    assert wants_engines(words) is wanted


@pytest.mark.parametrize("name", ["up", "token", "signin", "keeper"])
def test_help_tells_of_data(name: str) -> None:
    command = load_command_class("console", name)
    assert "--data DIR" in command.create_parser("manage.py", name).format_help()


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "nonsense"),
        ("DATABASE_URL", "mysql://host/console"),
        ("DATABASE_URL", "sqlite:///console"),
        ("DATABASE_URL", "postgresql://host:port/console"),
        ("REDIS_URL", "nonsense"),
        ("REDIS_URL", "http://host"),
    ],
)
def test_a_url_of_another_kind_is_refused_before_django_reads_it(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, url)
    with pytest.raises(CannotStart, match=rf"^{name} is not the URL of a .*: write it as .*\.$"):
        check_urls()


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "postgresql://mira:a%40b@host:5433/console?sslmode=require"),
        ("DATABASE_URL", "postgres://host/console"),
        ("REDIS_URL", "rediss://:secret@host:6379/0"),
        ("REDIS_URL", "unix:///run/valkey.sock"),
    ],
)
def test_urls_of_such_servers_pass(name: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, url)
    check_urls()


class Refusing(ConsoleCommand):
    migrates = False

    def handle(self, *args: Any, **options: Any) -> None:
        raise NotFound("root", 7)


def test_a_refusal_is_its_sentence_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        Refusing().run_from_argv(["manage.py", "refusing"])
    assert ended.value.code == 1
    assert capsys.readouterr().err == "There is no root 7, or it is not yours to see.\n"


def test_a_refusal_stays_an_exception_for_code() -> None:
    with pytest.raises(NotFound):
        call_command(Refusing())


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]")]
)
def test_the_address_is_one_that_a_browser_here_can_open(host: str, shown: str) -> None:
    with bind(host, 0) as listening:
        port = listening.getsockname()[1]
        assert address_of(listening) == f"http://{shown}:{port}/"
        socket.create_connection((shown.strip("[]"), port)).close()


@pytest.mark.parametrize(("host", "port"), [("no-such-host.invalid", 0), ("127.0.0.1", 70_000), ("192.0.2.1", 0)])
def test_an_address_that_cannot_be_had_is_one_sentence(host: str, port: int) -> None:
    with pytest.raises(CannotStart, match=rf"^Port {port} on {host} cannot be used \(.*--port .* and --host\.$"):
        bind(host, port)


def test_the_address_that_was_asked_for_is_an_allowed_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALLOWED_HOSTS", raising=False)
    assert allowed_hosts("127.0.0.1") == {}
    assert allowed_hosts("192.0.2.7") == {"ALLOWED_HOSTS": "localhost,127.0.0.1,[::1],192.0.2.7"}
    assert allowed_hosts("2001:db8::1") == {"ALLOWED_HOSTS": "localhost,127.0.0.1,[::1],[2001:db8::1]"}
    monkeypatch.setenv("ALLOWED_HOSTS", "console.example")
    assert allowed_hosts("192.0.2.7") == {}


def test_open_files_are_raised_as_far_as_the_system_allows() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
        raise_open_files()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert hard == before[1]
        assert soft == (OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


HEAVY = {"anthropic", "daphne", "docx", "lxml", "mcp", "openpyxl", "PIL", "pptx", "pypdfium2", "twisted", "uvicorn"}


def test_commands_do_not_import_what_few_of_them_need() -> None:
    """Each of `up`'s processes starts so, and each command: the model's SDK alone took as long as all the rest."""
    script = "import sys, django; django.setup(); print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert "django" in loaded.stdout.split()
    assert HEAVY & set(loaded.stdout.split()) == set()

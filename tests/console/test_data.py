"""The data directory: where things are, and that its secrets are its own."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dj_database_url
import pytest
from psycopg.conninfo import conninfo_to_dict
from redis import Redis

from console import data


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CONSOLE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_default_is_dot_console_under_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONSOLE_DATA", raising=False)
    assert data.data_dir() == data.CHECKOUT / ".console"


def test_relative_directory_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONSOLE_DATA", "here")
    assert data.data_dir() == tmp_path / "here"


@pytest.mark.parametrize("name", ["plain", "Mixed Case & spaces %41", "ä" * 80])
def test_every_client_reads_the_same_sockets_from_the_urls(
    name: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSOLE_DATA", str(directory / name))
    folder = data.socket_dir()
    assert len(os.fsencode(folder / data.POSTGRES_SOCKET)) <= data.LONGEST_SOCKET_PATH
    assert conninfo_to_dict(data.database_url())["host"] == str(folder)
    assert dj_database_url.parse(data.database_url())["HOST"] == str(folder)
    assert dj_database_url.parse(data.database_url())["NAME"] == data.DATABASE_NAME
    redis_kwargs = Redis.from_url(data.redis_url()).connection_pool.connection_kwargs
    assert redis_kwargs["path"] == str(folder / data.VALKEY_SOCKET)


def test_urls_of_the_environment_win(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data.has_own_database()
    assert data.has_own_valkey()
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/x")
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    assert data.database_url() == "postgresql://elsewhere/x"
    assert data.redis_url() == "redis://elsewhere"
    assert not data.has_own_database()
    assert not data.has_own_valkey()


def test_secret_key_is_made_once_for_many_starters_and_is_private(directory: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: data.secret_key(), range(32)))
    assert len(keys) == 1
    assert len(keys.pop()) >= 50
    assert stat.S_IMODE((directory / "secret_key").stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert [path.name for path in directory.iterdir()] == ["secret_key"]


def test_cookie_suffix_is_stable_and_each_directorys_own(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3: cookies ignore ports."""
    first = data.cookie_suffix()
    assert first == data.cookie_suffix()
    monkeypatch.setenv("CONSOLE_DATA", str(directory.with_name("other")))
    assert data.cookie_suffix() != first


def test_machines_that_share_the_secret_share_cookies(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "k" * 50)
    first = data.cookie_suffix()
    monkeypatch.setenv("CONSOLE_DATA", str(directory.with_name("other")))
    assert data.secret_key() == "k" * 50
    assert data.cookie_suffix() == first

"""Alive, ready, and in numbers."""

import re
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries, Settings

from console.clock import moved, now
from console.counters import count_request
from lineage.models import Task
from tests.factories import make_root


def numbers(client: Client) -> dict[tuple[str, ...], float]:
    """Every sample of `/metrics`: by its name and its labels' values."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(answer.content.decode())
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_alive_asks_no_engine(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


@pytest.mark.django_db
def test_ready_when_both_engines_answer(client: Client) -> None:
    answer = client.get("/readyz")
    ready = dict.fromkeys(["status", "database", "valkey", "attachments"], "ready")
    assert (answer.status_code, answer.json()) == (200, ready)


@pytest.mark.django_db
def test_a_full_pool_is_said(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """R11: a sentence, not an error."""

    def full() -> str:
        raise OperationalError("couldn't get a connection after 10.00 sec")

    monkeypatch.setattr("console.health.check_attachments", full)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["attachments"] == "Every database connection of this process is in use."


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("engine", "setting", "url"),
    [
        ("database", "DATABASE_URL", "postgresql://console:hidden@127.0.0.1:9/console"),
        ("valkey", "REDIS_URL", "unix:///no/such/socket"),
    ],
)
def test_unready_names_the_engine_that_does_not_answer(
    client: Client, settings: Settings, engine: str, setting: str, url: str
) -> None:
    setattr(settings, setting, url)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    found = answer.json()
    other = ({"database", "valkey"} - {engine}).pop()
    assert (found["status"], found[other]) == ("unready", "ready")
    assert re.fullmatch(r".* does not answer.*\.", found[engine])
    assert "hidden" not in str(found)


@pytest.mark.django_db
def test_metrics_tell_what_waits_and_how_late(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    root = make_root()
    for kind, count in (("notify", 2), ("summarise", 1)):
        for _ in range(count):
            Task.objects.create(
                conversation_id=root.pk,
                kind=kind,
                version=1,
                input="{}",
                phase="start",
                foreground=False,
                due=now(),
                created=now(),
            )
    with moved(timedelta(seconds=90)), django_assert_num_queries(5):
        found = numbers(client)
    assert found["console_database_up",] == 1
    assert found["console_tasks", "notify", "pending"] == 2
    assert found["console_tasks", "summarise", "pending"] == 1
    assert 90 <= found["console_task_late_seconds",] < 120
    assert found["console_board_behind",] >= 1
    assert found["console_database_bytes",] > 1_000_000
    assert found["console_database_connections",] >= 1
    assert ("console_rows", "lineage_entry") in found


@pytest.mark.django_db
def test_metrics_count_requests_under_names_that_clients_cannot_invent(client: Client) -> None:
    before = numbers(client)
    count_request(method="GET", status=200, seconds=0.02)
    count_request(method="X-INVENTED", status=200, seconds=0.02)
    after = numbers(client)

    def grown(*name: str) -> float:
        return after[name] - before.get(name, 0)

    assert grown("console_http_requests_total", "GET", "200") == 1
    assert grown("console_http_requests_total", "other", "200") == 1
    assert grown("console_http_seconds_count") == 2
    assert not any("X-INVENTED" in name for name in after)

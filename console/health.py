"""Alive, ready, and in numbers: for who runs the console. No names, no texts, so no sign-in is asked for."""

import psycopg
from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from redis.exceptions import RedisError

from console.embedded.valkey import ask
from documents.attachments.storing import check_attachments

PING_SECONDS = 2  # longer than any healthy engine takes, shorter than a load balancer waits


def healthz(request: HttpRequest) -> HttpResponse:
    """This process answers, whatever its engines do."""
    return JsonResponse({"status": "alive"})


def readyz(request: HttpRequest) -> HttpResponse:
    """The engines can be reached and the folder is the shared one: 200, else 503 with what is wrong under its name."""
    checks = {"database": check_database(), "valkey": check_valkey()}
    checks["attachments"] = "Not looked at without the database." if checks["database"] else check_folder()
    found = {name: reason or "ready" for name, reason in checks.items()}
    wrong = any(checks.values())
    return JsonResponse({"status": "unready" if wrong else "ready", **found}, status=503 if wrong else 200)


def check_database() -> str:
    """Empty when the database answers, else a sentence. On a connection of its own: a busy pool is not a dead server."""
    try:
        with psycopg.connect(settings.DATABASE_URL, connect_timeout=PING_SECONDS) as connection:
            connection.execute("SELECT 1")
    except psycopg.Error:
        return "The database does not answer."
    return ""


def check_valkey() -> str:
    """Empty when Valkey answers, else a sentence."""
    try:
        ask(settings.REDIS_URL, PING_SECONDS)
    except (RedisError, OSError):
        return "Valkey does not answer; changes are seen a little later."
    return ""


def check_folder() -> str:
    """Empty when the attachments' folder is the one that all machines share (D18), else a sentence."""
    try:
        return check_attachments()
    except DatabaseError:  # the server answered a moment ago
        return "Every database connection of this process is in use."

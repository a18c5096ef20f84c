"""Static files: asked for each time, never from another site, outside of threads (S3)."""

from asgiref.sync import iscoroutinefunction
from django.test import Client
from django.utils.module_loading import import_string
from pytest_django import Settings


def test_a_module_is_served_and_asked_for_again() -> None:
    answer = Client(headers={"host": "localhost"}).get("/static/documents/applier.js")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/javascript")
    assert "max-age=0" in answer["Cache-Control"]
    assert "Access-Control-Allow-Origin" not in answer
    again = Client(headers={"host": "localhost", "if-modified-since": answer["Last-Modified"]})
    assert again.get("/static/documents/applier.js").status_code == 304


def test_no_middleware_holds_a_thread(settings: Settings) -> None:
    """A synchronous one would put every waiting call on a thread of its own."""

    async def get_response(request: object) -> None: ...

    for name in settings.MIDDLEWARE:
        kind = import_string(name)
        assert kind.async_capable, name
        assert iscoroutinefunction(kind(get_response)), name

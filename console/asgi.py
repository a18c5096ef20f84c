"""Where requests come in from the web server: pages and calls to Django, `/live/` to the live socket."""

import os
from typing import Any

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

http = get_asgi_application()  # sets Django up before the imports below read models

from console.live.consumer import live  # noqa: E402

# The pages and calls are made ready here, a third of a second, and not while somebody waits for the first answer.
assert get_resolver().url_patterns

LIVE = "/live/"


async def sockets(scope: Any, receive: Any, send: Any) -> None:
    """The one address for sockets; every other is refused before the handshake."""
    if scope["path"].removeprefix(scope.get("root_path", "")) == LIVE:
        await live(scope, receive, send)
        return
    await receive()
    await send({"type": "websocket.close"})


application = ProtocolTypeRouter({"http": http, "websocket": sockets})  # type: ignore[no-untyped-call]

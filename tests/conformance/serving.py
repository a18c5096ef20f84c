"""The suite's server on the console's own web server: `python -m tests.conformance.serving FD`.

The suite cannot send a token, so a layer before Django adds `CONFORMANCE_TOKEN`, which is checked as ever. `CONSOLE_DATA` and
`TEST_DATABASE` say where its row is.
"""

import os
import sys
from typing import Any

import django


def main(descriptor: int) -> None:
    django.setup()
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.db import connections

    from console.server import make_server

    settings.DATABASES["default"]["NAME"] = os.environ["TEST_DATABASE"]
    connections["default"].settings_dict["NAME"] = os.environ["TEST_DATABASE"]
    settings.ROOT_URLCONF = "tests.conformance.everything"
    make_server(with_token(get_asgi_application(), os.environ["CONFORMANCE_TOKEN"]), descriptor).run()


def with_token(application: Any, token: str) -> Any:
    async def run(scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]
        await application({**scope, "headers": headers}, receive, send)

    return run


if __name__ == "__main__":
    main(int(sys.argv[1]))

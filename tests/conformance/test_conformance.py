"""The official conformance suite of MCP against the console's view, server and tokens, in both eras of the protocol.

The suite is fetched once, into this folder; it then needs no network.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from console import frontend
from console.data import CHECKOUT
from console.embedded.children import start_bound
from console.listening import bind
from tests.factories import make_agent, make_root

HERE = Path(__file__).parent
SUITE = HERE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"


@pytest.fixture
def url(transactional_db: None) -> Iterator[str]:
    _, secret = make_agent(make_root())
    with bind("127.0.0.1", 0) as listening:
        process = start_bound(
            [sys.executable, "-m", "tests.conformance.serving", str(listening.fileno())],
            pass_fds=(listening.fileno(),),
            stdout=subprocess.DEVNULL,
            cwd=CHECKOUT,
            env={
                **os.environ,
                "CONFORMANCE_TOKEN": secret,
                "TEST_DATABASE": str(connection.settings_dict["NAME"]),
                "LOG_LEVEL": "ERROR",
            },
        )
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        process.terminate()
        process.wait(10)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_suite_fails_only_where_it_is_known_to(url: str, revision: str, tmp_path: Path) -> None:
    """Each known failure says why in `expected-failures-*.yml`; the suite also refuses one that passes by now."""
    frontend.install(checkout=HERE)
    known = HERE / f"expected-failures-{revision}.yml"
    options = ["--url", url, "--requirements", revision, "--expected-failures", str(known), "--output-dir", "results"]
    done = subprocess.run(
        [str(frontend.node_binary()), str(SUITE), "server", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = {path.parent.name.split("-20")[0] for path in (tmp_path / "results").rglob("checks.json")}
    assert {"server-tools-list", "server-tools-call-error", "server-dns-rebinding-protection"} <= passed

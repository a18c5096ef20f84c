"""A running console as outside programs meet it: edits while its processes are killed (L10)."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.console.up import Console, running_console, wait_until

assert running_console  # the fixture

WRITERS = 3
BETWEEN_KILLS = 15  # acknowledged edits of all writers together


@dataclass
class Api:
    """The HTTP API with one token."""

    base: str
    secret: str

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        """(status, answer); status 0 when nothing answered."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.base}api/{path}", data, headers, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except (OSError, ValueError):
            return 0, None


@pytest.fixture
def api(running_console: Console) -> Api:
    made = running_console.manage("token", "wren", "--root", "new", "--main")
    assert made.returncode == 0, made.stderr
    return Api(running_console.base_url, made.stdout.strip())


@pytest.fixture
def root(api: Api) -> int:
    _, listed = api.call("GET", "roots")
    return int(listed["items"][0]["id"])


@dataclass
class Writer:
    """Writes its numbers before its own mark, one after the other, each under one request id until it is accepted."""

    api: Api
    document: int
    name: str
    accepted: dict[int, int] = field(default_factory=dict)  # number → revision
    stopped: threading.Event = field(default_factory=threading.Event)
    odd: list[object] = field(default_factory=list)

    def run(self) -> None:
        number = 0
        while not self.stopped.is_set():
            edits = [{"old_string": f"<{self.name}>", "new_string": f"{number} <{self.name}>"}]
            body = {"edits": edits, "request_id": f"{self.name}-{number}"}
            status, answer = self.api.call("POST", f"documents/{self.document}/edits", body)
            if status == 200:
                self.accepted[number] = answer["revision"]
                number += 1
            elif status not in {0, 500, 502, 503}:
                self.odd.append((status, answer))
                return
            else:
                self.stopped.wait(0.1)


@pytest.fixture
def writers(api: Api, root: int) -> Iterator[list[Writer]]:
    text = "".join(f"<w{n}>\n" for n in range(WRITERS))
    _, document = api.call("POST", f"conversations/{root}/documents", {"title": "Busy", "text": text})
    writers = [Writer(api, document["id"], f"w{n}") for n in range(WRITERS)]
    threads = [threading.Thread(target=writer.run) for writer in writers]
    for thread in threads:
        thread.start()
    yield writers
    for writer in writers:
        writer.stopped.set()
    for thread in threads:
        thread.join()


@pytest.mark.timeout(300)
def test_no_acknowledged_edit_is_lost_whatever_is_killed(
    running_console: Console,
    api: Api,
    writers: list[Writer],
) -> None:
    """L10, D10: web, worker, Valkey and PostgreSQL in turn, by SIGKILL, while edits run."""

    def wait_for_edits() -> None:
        aim = sum(len(writer.accepted) for writer in writers) + BETWEEN_KILLS
        wait_until(
            lambda: sum(len(writer.accepted) for writer in writers) >= aim or any(writer.odd for writer in writers),
            "further edits",
        )

    wait_for_edits()
    for name in ("web", "worker", "valkey", "postgres"):
        running_console.kill_and_return(name)
        running_console.wait_until_ready()
        wait_for_edits()
    for writer in writers:
        writer.stopped.set()
    wait_until(lambda: api.call("GET", f"documents/{writers[0].document}")[0] == 200, "the document")
    assert [writer.odd for writer in writers] == [[]] * WRITERS
    _, found = api.call("GET", f"documents/{writers[0].document}")
    revisions: list[int] = []
    for writer, line in zip(writers, found["text"].splitlines(), strict=True):
        numbers = [int(word) for word in line.split()[:-1]]
        assert numbers == list(range(len(numbers)))  # each once, in order: nothing lost and nothing twice
        assert len(numbers) >= len(writer.accepted)
        revisions += writer.accepted.values()
    assert len(set(revisions)) == len(revisions)
    checked = running_console.manage("verify")
    assert checked.returncode == 0, checked.stdout

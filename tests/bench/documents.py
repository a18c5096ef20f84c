"""Edits of one live document (DESIGN 11): how many are accepted a second, durable before the answer, and what opening costs.

    uv run python -m tests.bench.documents --seconds 5

A 51 kB document, 40-character edits over the live socket, 4 and then 32 writers with four edits in flight each; PostgreSQL
syncs every commit. Then the document is opened over HTTP, by a web process that has not seen it (cold) and again (warm),
with all those edits behind it. The generator shares the machine.
"""

import argparse
import asyncio
import http.client
import statistics
import time

from tests.bench.fanout import FILLER, mark, opened, written
from tests.bench.place import cpu_seconds, engine_pids, own_console, web_process

WRITERS = (4, 32)
WARM = 20  # openings after the first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    with own_console():
        from console.models import Role
        from tests.factories import make_agent, make_document, make_root

        who, secret = make_agent(make_root(), role=Role.OPERATOR)
        assert who.root is not None
        marks = "".join(f"{mark(number, 0, 0)}\n" for number in range(max(WRITERS)))
        documents = [make_document(who, who.root, marks + FILLER).pk for _ in WRITERS]
        edits = 0
        with web_process() as (place, process):
            for count, document in zip(WRITERS, documents, strict=True):
                edits = asyncio.run(measure_edits(place, secret, document, count, options.seconds, process.pid))
        with web_process() as (place, _):
            asyncio.run(one_socket(place, secret))  # the server is up
            measure_opening(place, secret, documents[-1], edits)


async def measure_edits(place: str, secret: str, document: int, count: int, seconds: float, web: int) -> int:
    """Writers as fast as they are answered; how many edits were recorded."""
    writers = [await opened(place, secret) for _ in range(count)]
    pids = [web, *engine_pids()]
    cpu, own, began = cpu_seconds(*pids), time.process_time(), time.monotonic()
    edits = await written(writers, document, 0, seconds)
    took = time.monotonic() - began
    used, generator = cpu_seconds(*pids) - cpu, time.process_time() - own
    print(
        f"{count} writers: {edits / took:.0f} edits/s accepted, durable before the answer ({edits} in {took:.2f} s);"
        f" server {used / edits * 1000:.3f} CPU ms an edit; generator {generator:.2f} CPU s"
    )
    for writer in writers:
        writer.close()
    return edits


async def one_socket(place: str, secret: str) -> None:
    (await opened(place, secret)).close()


def measure_opening(place: str, secret: str, document: int, edits: int) -> None:
    """The same text, cold and warm."""
    times, size = [], 0
    for _ in range(WARM + 1):
        began = time.monotonic()
        connection = http.client.HTTPConnection(place, timeout=30)
        connection.request("GET", f"/api/documents/{document}", headers={"Authorization": f"Bearer {secret}"})
        answer = connection.getresponse()
        size = len(answer.read())
        assert answer.status == 200
        connection.close()
        times.append((time.monotonic() - began) * 1000)
    warm = statistics.median(times[1:])
    print(f"opening after {edits} edits: cold {times[0]:.1f} ms, warm {warm:.1f} ms (median), {size} bytes")


if __name__ == "__main__":
    main()

"""Worker processes for tests of L10: `python -m tests.lineage.worker_server`, one line of JSON in, one out.

Django is loaded once; each line forks a process that runs what is due and woken, with `exit_at` as the boundary at which it is
to end without warning. Answers its exit status: 0 when it ran to the end, 137 when it was ended. `CONSOLE_DATA` and
`TEST_DATABASE` say where.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import django


def main() -> None:
    django.setup()
    from django.conf import settings
    from django.db import connections

    settings.DATABASES["default"]["NAME"] = os.environ["TEST_DATABASE"]
    connections["default"].settings_dict["NAME"] = os.environ["TEST_DATABASE"]
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            with ending():
                run(order["exit_at"])
        _, status = os.waitpid(child, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


@contextmanager
def ending() -> Iterator[None]:
    """The forked process never returns into the loop."""
    try:
        yield
    except BaseException as error:
        print(f"worker: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def run(exit_at: str) -> None:
    from django.conf import settings

    from console.demo import acting
    from tests.lineage.kinds import register_test_kinds
    from tests.lineage.working import work

    settings.EXIT_AT = exit_at
    acting.WORD_SECONDS = 0
    register_test_kinds()
    work()


if __name__ == "__main__":
    main()

"""Worker processes for tests that kill them: `python -m tests.lineage.agent.worker`, one line of JSON in, one out.

Django is loaded once; each line forks a worker that runs what is due, ending without warning at the boundary `exit_at`, or with
`for_ever` goes on until it is killed, keeping the board too. Its process number is answered at once, its exit status when
`{"wait": pid}` asks for it.
"""

import json
import os
import sys
import time

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
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)
            continue
        child = os.fork()
        if child == 0:
            work_and_end(order["exit_at"], for_ever=order.get("for_ever", False))
        print(json.dumps(child), flush=True)


def work_and_end(exit_at: str, *, for_ever: bool) -> None:
    """The forked process never returns into the loop."""
    from django.conf import settings

    from console.board.keeping import fold_touched
    from lineage.tasks.leases import start_renewing
    from tests.lineage.working import work

    settings.EXIT_AT = exit_at
    try:
        start_renewing()
        work()
        while for_ever:
            fold_touched()
            time.sleep(0.02)
            work()
    except BaseException as error:
        print(f"worker: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()

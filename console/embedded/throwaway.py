"""Engines in a temporary folder for a test run: `python -m console.embedded.throwaway FOLDER`.

They run until standard input ends, which it also does when the test run is killed; then they are stopped and the
folder is removed. Prints one line when they answer.
"""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from console.embedded.errors import CannotStart
from console.embedded.locks import open_lock
from console.embedded.running import ENGINES_LOCK, engines

PREFIX = "lineage-tests-"


def main() -> int:
    # Ctrl-C goes to everybody at the terminal: the test run finishes first, and the end of input says so.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    folder = Path(sys.argv[1])
    remove_abandoned(folder.parent)
    os.environ["CONSOLE_DATA"] = str(folder)
    try:
        with engines(durable=False):
            print("ready", flush=True)
            sys.stdin.buffer.read()
    except CannotStart as error:
        print(error, flush=True)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def make_folder() -> Path:
    """A new private folder for `main`, with a name that is recognised when it is left behind."""
    return Path(tempfile.mkdtemp(prefix=PREFIX))


def remove_abandoned(parent: Path) -> None:
    """Remove the folders of runs whose engines nobody holds any more: those where this process itself was killed."""
    for folder in parent.glob(f"{PREFIX}*"):
        if folder.stat().st_uid != os.geteuid() or not (folder / ENGINES_LOCK).exists():
            continue
        with open_lock(folder, ENGINES_LOCK) as lock:
            if lock.take():
                shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

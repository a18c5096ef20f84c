"""What happens before Django: `--data` takes effect before the settings read it, and the engines are there before a
command asks the database. `manage.py` is only this."""

import os
import signal
import sys
from types import FrameType

from console.embedded import CannotStart, engines
from console.embedded.running import check_urls, prepare_data_dir

# Everything else may ask the database. `up` runs the engines itself.
WITHOUT_ENGINES = {
    "up",
    "check",
    "collectstatic",
    "diffsettings",
    "findstatic",
    "frontend",
    "help",
    "makemessages",
    "pin",
    "startapp",
    "test",
    "version",
}


class Terminated(KeyboardInterrupt):
    """SIGTERM asked to stop: as Ctrl-C does, with its own exit code."""


def terminate(number: int, frame: FrameType | None) -> None:
    """End by an exception, so that engines of one's own are stopped too."""
    raise Terminated


def main(argv: list[str]) -> None:
    """Run one command of `manage.py`; `argv` is what the shell gave, the script's name first."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    try:
        argv = take_data_option(argv)
        prepare_data_dir()
        check_urls()
        if not wants_engines(argv):
            return execute(argv)
        signal.signal(signal.SIGTERM, terminate)
        with engines():
            return execute(argv)
    except CannotStart as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except Terminated:
        sys.exit(128 + signal.SIGTERM)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def take_data_option(argv: list[str]) -> list[str]:
    """Move `--data DIR` or `--data=DIR` from the words of the command into `CONSOLE_DATA`; what follows `--` stays."""
    end = argv.index("--") if "--" in argv else len(argv)
    kept: list[str] = []
    words = iter(argv[:end])
    for word in words:
        if word == "--data":
            directory = next(words, None)
        elif word.startswith("--data="):
            directory = word.removeprefix("--data=")
        else:
            kept.append(word)
            continue
        if not directory:
            raise CannotStart("--data needs a directory: --data DIR.")
        os.environ["CONSOLE_DATA"] = directory
    return kept + argv[end:]


def wants_engines(argv: list[str]) -> bool:
    """Whether this command asks the database: not for its help, and not the few that never do."""
    if len(argv) < 2 or argv[1].startswith("-") or argv[1] in WITHOUT_ENGINES:
        return False
    return not {"-h", "--help"} & set(argv[2:])


def execute(argv: list[str]) -> None:
    """Django's own part. Imported late: an import of Django reads no settings, but takes a quarter of a second."""
    from django.core.management import execute_from_command_line

    execute_from_command_line(argv)

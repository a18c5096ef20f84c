"""`run_command` (A2): `sh -c` in the folder, without input, 120 s at most, the end of long output, the exit code."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lineage.agent.failures import ToolFailed

SECONDS = 120.0
"""What a command may take: a test suite, not a server."""

KEPT_BYTES = 64 * 1024
"""Bytes of output held in memory, the newest: a command may print without end."""

SHOWN_CHARACTERS = 30_000
"""Characters of output in the answer: below the limit of a tool result."""

COMMAND_BYTES = 100_000
"""Bytes of a command: what one argument of a program may have, with room to spare."""

_LOOK_S = 0.2  # how often a stop is looked for
_RUNNER = Path(__file__).with_name("runner.py")
# What the console keeps to itself: a command of an agent has no business with it.
_PRIVATE = ("ANTHROPIC_", "CONSOLE_", "DJANGO_", "DATABASE_", "REDIS_", "SECRET_KEY")


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How a command ended. `code` is its exit code (128 + n: ended by signal n); `ended` is "", "time" or "stop"."""

    code: int
    output: str
    seconds: float
    ended: str

    def as_answer(self) -> str:
        said = {
            "": f"Exit code {self.code}, after {self.seconds:.1f} s.",
            "time": f"Ended after {SECONDS:.0f} s, with all that it had started: a command may not take longer.",
            "stop": "Stopped by a person, with all that it had started.",
        }[self.ended]
        return f"{self.output}\n\n({said})" if self.output else f"(No output. {said})"


def run_command(
    root: str, command: str, *, stopped: Callable[[], bool] = lambda: False, seconds: float = SECONDS
) -> Ran:
    """Run it to its end, its time limit, or until `stopped()` says so (asked every 0.2 s). Raises `ToolFailed`."""
    if not command.strip() or "\0" in command:
        raise ToolFailed("A command is needed, without U+0000.")
    if len(command.encode("utf-8", "surrogatepass")) > COMMAND_BYTES:
        raise ToolFailed(
            f"The command has more than {COMMAND_BYTES} bytes. Write a script with edit_file and run that."
        )
    if not Path(root).is_dir():
        raise ToolFailed(f"The working folder {root} does not exist. Someone has to bring it back.")
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_RUNNER), root, command.encode("utf-8", "replace").decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={name: value for name, value in os.environ.items() if not name.startswith(_PRIVATE)},
        start_new_session=True,  # a Ctrl-C of the console's terminal is not the command's
    )
    assert child.stdin is not None
    assert child.stdout is not None
    began = time.monotonic()
    output, dropped, ended = b"", 0, ""
    with child.stdout as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], _LOOK_S)
            if ready:
                chunk = os.read(pipe.fileno(), 65_536)
                if not chunk:
                    break
                output += chunk
                if len(output) > KEPT_BYTES:
                    dropped += len(output) - KEPT_BYTES
                    output = output[-KEPT_BYTES:]
            if not ended:
                ended = "time" if time.monotonic() - began > seconds else "stop" if stopped() else ""
                if ended:
                    child.stdin.close()  # the lifeline: the runner ends everything
    code = child.wait()
    child.stdin.close()
    return Ran(code=code, output=_shown(output, dropped), seconds=time.monotonic() - began, ended=ended)


def _shown(output: bytes, dropped: int) -> str:
    text = output.decode("utf-8", "replace").replace("\0", "�")
    cut = len(text) - SHOWN_CHARACTERS
    if cut > 0:
        text = text[cut:]
    if cut <= 0 and not dropped:
        return text.rstrip("\n")
    return f"(The end of a long output; {dropped + max(cut, 0)} earlier bytes are not shown.)\n{text}".rstrip("\n")

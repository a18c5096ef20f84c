"""Real worker processes for tests, which can be killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

ROOT = Path(__file__).resolve().parents[3]
PRICES = {"fake-*": {"input": 3000.0, "output": 15000.0}}  # dollars per million tokens: a few words cost cents


class Workers:
    """Forks workers that a test can kill."""

    def __init__(self, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.lineage.agent.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "console.settings",
                "TEST_DATABASE": str(connection.settings_dict["NAME"]),
                "CONSOLE_DATA": str(settings.DATA_DIR),
                "CONSOLE_MODEL": "fake-large",
                "ANTHROPIC_BASE_URL": url,
                "CONSOLE_PRICES": json.dumps(PRICES),
                "REDIS_URL": settings.REDIS_URL,
            },
        )
        assert self._line() == "ready"

    def start(self, exit_at: str = "", *, for_ever: bool = False) -> int:
        """A worker on the test's database and model; its process number."""
        return self._ask({"exit_at": exit_at, "for_ever": for_ever})

    def ended(self, worker: int) -> int:
        """Its exit status, once it has ended."""
        return self._ask({"wait": worker})

    def kill(self, worker: int) -> None:
        os.kill(worker, signal.SIGKILL)
        assert self.ended(worker) == -signal.SIGKILL

    def _ask(self, order: dict[str, Any]) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(json.loads(self._line()))

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

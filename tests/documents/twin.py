"""The browser's applier in one long-lived node process, for tests that hold it against the server's."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from console.frontend import node_binary
from documents.edits import Edit, EditError, apply_edits

SERVER = Path(__file__).parents[1] / "js" / "twin-server.mjs"


def outcome(text: str, edits: Sequence[Edit]) -> dict[str, Any]:
    """What the server makes of a batch, in the shape of the vectors: `result`, or `error` and `message`."""
    try:
        return {"result": apply_edits(text, edits)}
    except EditError as error:
        return {"error": {"code": error.code, **error.facts}, "message": error.message}


class Twin:
    """Asks the twin, one JSON line for each batch (unpaired surrogates travel escaped)."""

    def __enter__(self) -> Self:
        self._node = subprocess.Popen([node_binary(), SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._node.communicate()

    def outcome(self, text: str, edits: Sequence[Edit]) -> dict[str, Any]:
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        batch = [{"old_string": edit.old_string, "new_string": edit.new_string} for edit in edits]
        self._node.stdin.write(json.dumps([text, batch]) + "\n")
        self._node.stdin.flush()
        line = self._node.stdout.readline()
        assert line, "the twin ended without an answer"
        return cast(dict[str, Any], json.loads(line))

"""Writes invented sessions in the form in which Claude Code keeps its own, so that the demo takes the road of real input."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

NAMESPACE = uuid.UUID("6a1f0c7e-9f53-4f0b-8f3e-2f1f6f1d7c11")
FOLDER = "/home/dev/parcels"
MODEL = "claude-sonnet-4-6"

Line = dict[str, Any]


@dataclass
class Session:
    """One transcript file in the making. Identifiers follow from its name, so writing it again gives the same lines."""

    name: str
    start: datetime
    agent: str = ""  # set for a subagent's file: lines carry its owner's session
    owner: str = ""
    lines: list[Line] = field(default_factory=list)
    leaf: str | None = None
    clock: timedelta = timedelta()
    answers: int = 0

    def title(self, text: str) -> None:
        self.lines.append({"type": "custom-title", "customTitle": text, "sessionId": self._session})

    def ask(self, text: str, *, after: float = 40) -> str:
        """A prompt of the person; answers its id, to rewind to."""
        return self._chain("user", {"message": {"role": "user", "content": text}}, after)

    def say(self, text: str, *, thinking: str = "", end: bool = True, after: float = 6) -> str:
        """An answer in prose; `end` ends the turn."""
        blocks: list[dict[str, Any]] = []
        if thinking:
            blocks.append({"type": "thinking", "thinking": thinking, "signature": "demo"})
        blocks.append({"type": "text", "text": text})
        self._answer(blocks, "end_turn" if end else None, after)
        leaf = self.leaf or ""
        if end:
            self._chain("system", {"subtype": "turn_duration", "durationMs": 21_400, "isMeta": False}, 0.2)
            self.leaf = leaf
        return leaf

    def call(self, name: str, given: dict[str, Any], result: str, *, extra: Any = None, error: bool = False) -> None:
        """One tool call and its result."""
        call = self.begin_call(name, given)
        self.end_call(call, result, extra=extra, error=error)

    def begin_call(self, name: str, given: dict[str, Any]) -> str:
        call = f"toolu_{_short(self.name, len(self.lines))}"
        self._answer([{"type": "tool_use", "id": call, "name": name, "input": given}], "tool_use", 4)
        return call

    def end_call(self, call: str, result: str, *, extra: Any = None, error: bool = False, after: float = 2) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": result, "is_error": error}
        more: Line = {"message": {"role": "user", "content": [block]}, "sourceToolAssistantUUID": self.leaf}
        if extra is not None:
            more["toolUseResult"] = extra
        self._chain("user", more, after)

    def edit(self, path: str, old: str, new: str, *, line: int = 1) -> None:
        """An edit of a file, with the patch that the page shows as a diff."""
        removed, added = old.splitlines(), new.splitlines()
        patch = {
            "oldStart": line,
            "oldLines": len(removed),
            "newStart": line,
            "newLines": len(added),
            "lines": [*(f"-{text}" for text in removed), *(f"+{text}" for text in added)],
        }
        full = str(PurePosixPath(FOLDER, path))
        extra = {"filePath": full, "oldString": old, "newString": new, "structuredPatch": [patch]}
        given = {"file_path": full, "old_string": old, "new_string": new}
        self.call("Edit", given, f"The file {full} has been updated.", extra=extra)

    def run(self, command: str, output: str, *, error: bool = False) -> None:
        """A command and its output."""
        extra = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        self.call("Bash", {"command": command}, output, extra=extra, error=error)

    def read(self, path: str, text: str) -> None:
        """A file as the agent read it."""
        full, count = str(PurePosixPath(FOLDER, path)), text.count("\n") + 1
        file = {"filePath": full, "content": text, "numLines": count, "startLine": 1, "totalLines": count}
        self.call("Read", {"file_path": full}, text, extra={"type": "text", "file": file})

    def rewind(self, leaf: str) -> None:
        """The next prompt continues from there: a branch."""
        self.leaf = leaf

    def compact(self, summary: str) -> None:
        """The context begins anew with a summary."""
        before = self.leaf
        self.leaf = None
        meta = {"trigger": "auto", "preTokens": 168_200}
        self._chain(
            "system",
            {
                "subtype": "compact_boundary",
                "content": "Conversation compacted",
                "compactMetadata": meta,
                "logicalParentUuid": before,
            },
            3,
        )
        text = f"This session continues from an earlier one. Summary:\n{summary}"
        more = {
            "message": {"role": "user", "content": text},
            "isCompactSummary": True,
            "isVisibleInTranscriptOnly": True,
        }
        self._chain("user", more, 1)

    def fail(self, text: str) -> None:
        """The provider refused: an error in the place of an answer."""
        message = self._message([{"type": "text", "text": text}], "stop_sequence") | {"model": "<synthetic>"}
        self._chain("assistant", {"message": message, "isApiErrorMessage": True}, 9)

    def encoded(self, start: int = 0, end: int | None = None) -> bytes:
        """The lines from `start` up to `end`, as they stand in the file."""
        return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in self.lines[start:end])

    def _answer(self, blocks: Sequence[dict[str, Any]], reason: str | None, after: float) -> None:
        """One line per block, all of one message, as the real files have it."""
        self.answers += 1
        for number, block in enumerate(blocks, 1):
            last = number == len(blocks)
            self._chain("assistant", {"message": self._message([block], reason if last else None)}, after)

    def _message(self, content: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
        usage = {
            "input_tokens": 6,
            "cache_creation_input_tokens": 420 + 37 * self.answers,
            "cache_read_input_tokens": 9_000 + 1_310 * self.answers,
            "output_tokens": 60 + len(json.dumps(content)) // 4,
        }
        return {
            "id": f"msg_{_short(self.name, 'answer', self.answers)}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": usage,
        }

    def _chain(self, kind: str, more: Line, after: float) -> str:
        self.clock += timedelta(seconds=after)
        number = str(uuid.uuid5(NAMESPACE, f"{self.name}/{len(self.lines)}"))
        line: Line = {
            "parentUuid": self.leaf,
            "isSidechain": bool(self.agent),
            "type": kind,
            "uuid": number,
            "timestamp": (self.start + self.clock).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "userType": "external",
            "cwd": FOLDER,
            "sessionId": self._session,
            "version": "2.1.207",
            "gitBranch": "main",
            **({"agentId": self.agent} if self.agent else {}),
            **more,
        }
        self.lines.append(line)
        self.leaf = number
        return number

    @property
    def _session(self) -> str:
        return session_id(self.owner or self.name)


def session_id(name: str) -> str:
    """The id of the session of that name, which is also its file's name."""
    return str(uuid.uuid5(NAMESPACE, name))


def _short(*parts: object) -> str:
    return uuid.uuid5(NAMESPACE, "/".join(map(str, parts))).hex[:20]

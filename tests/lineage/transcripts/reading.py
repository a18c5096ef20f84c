"""Reading transcripts in tests: a plan as one value, and invented Claude Code lines."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from lineage.transcripts.claude import ClaudeReader
from lineage.transcripts.lines import LineSplitter
from lineage.transcripts.plan import Appended, Linked, Opened, PlannedEntry, Stated, Step, Titled, Used
from lineage.transcripts.reader import READERS, Reader

SAMPLES = Path(__file__).resolve().parents[2] / "transcripts"


@dataclass
class Conversation:
    """A conversation as the steps leave it."""

    opened: Opened
    entries: list[PlannedEntry] = field(default_factory=list)
    title: str = ""
    state: str = ""
    why: str = ""
    model: str = ""
    owner: tuple[str, int] | None = None

    @property
    def kinds(self) -> list[str]:
        return [entry.kind for entry in self.entries]

    @property
    def prompts(self) -> list[str]:
        return [entry.prompt for entry in self.entries if entry.prompt]

    @property
    def fork(self) -> tuple[str, int] | None:
        parent = self.opened.parent
        return (parent.conversation, parent.ordinal) if parent else None


def folded(steps: Iterable[Step]) -> dict[str, Conversation]:
    """The conversations that the steps make, by key; fails on a step that names no open conversation, or opens one twice."""
    found: dict[str, Conversation] = {}
    for step in steps:
        match step:
            case Opened():
                assert step.key not in found
                owner = (step.owner.conversation, step.owner.ordinal) if step.owner else None
                found[step.key] = Conversation(step, owner=owner)
                if step.parent:
                    assert step.parent.ordinal <= len(found[step.parent.conversation].entries)
            case Appended():
                for place in step.entry.omits:
                    assert 1 <= place.ordinal <= len(found[place.conversation].entries)
                found[step.key].entries.append(step.entry)
            case Linked():
                found[step.key].owner = (step.owner.conversation, step.owner.ordinal)
            case Titled():
                found[step.key].title = step.title
            case Stated():
                found[step.key].state, found[step.key].why = str(step.state), step.why
            case Used():
                found[step.key].model = step.model
    return found


def read_files(reader: Reader, base: Path, *names: str) -> list[Step]:
    """Read whole files one after another, meta files first, as an import does."""
    steps: list[Step] = []
    for name in names:
        meta = base / name.replace(".jsonl", ".meta.json")
        if meta.exists():
            reader.tell_meta(name, json.loads(meta.read_text()))
        splitter = LineSplitter()
        lines = splitter.feed((base / name).read_bytes())
        last = splitter.last()
        steps += reader.read(name, [*lines, last] if last else lines)
    return steps + reader.settle()


def read_in_pieces(
    format: str, base: Path, names: Sequence[str], cuts: Sequence[Sequence[float]], *, forget: bool
) -> list[Step]:
    """Read files cut at these parts of their length; `forget` starts a new reader from the records before each piece."""
    reader = READERS[format]()
    steps: list[Step] = []
    records: list[bytes] = []
    for name, parts in zip(names, cuts, strict=True):
        data, splitter = (base / name).read_bytes(), LineSplitter()
        meta = base / name.replace(".jsonl", ".meta.json")
        if meta.exists():
            reader.tell_meta(name, json.loads(meta.read_text()))
        edges = sorted({0, len(data), *(int(part * len(data)) for part in parts)})
        for start, end in pairwise(edges):
            steps += reader.read(name, splitter.feed(data[start:end]))
            records.append(reader.memory.taken())
            if forget:
                reader = READERS[format]()
                reader.memory.recall(records)
    return steps + reader.settle()


def read_claude(*names: str) -> dict[str, Conversation]:
    return folded(read_files(ClaudeReader(), SAMPLES / "claude", *names))


class Script:
    """Invents the lines of one Claude Code file. Each call answers the uuid of its line; `parent` defaults to the last one."""

    def __init__(self, session: str = "s1", start: int = 0) -> None:
        self.session = session
        self.lines: list[dict[str, Any]] = []
        self._numbers = count(start + 1)
        self._last: str | None = None

    def prompt(self, text: str, **extra: Any) -> str:
        return self.line("user", message={"role": "user", "content": text}, **extra)

    def answer(
        self, *blocks: str | dict[str, Any], message: str = "", stop: str | None = "end_turn", **extra: Any
    ) -> str:
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        told = {
            "id": message or f"msg_{self.session}_{next(self._numbers)}",
            "model": "claude-sonnet-4-6",
            "role": "assistant",
            "content": content,
            "stop_reason": stop,
            "usage": {"input_tokens": 3, "output_tokens": len(self.lines)},
        }
        return self.line("assistant", message=told, **extra)

    def call(self, call: str, name: str = "Bash", *, message: str = "", parent: str | None = "", **given: Any) -> str:
        block = {"type": "tool_use", "id": call, "name": name, "input": given}
        return self.answer(block, message=message, stop="tool_use", parent=parent)

    def result(self, call: str, text: str = "done", **extra: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self.line("user", message={"role": "user", "content": [block]}, **extra)

    def system(self, subtype: str, **extra: Any) -> str:
        return self.line("system", subtype=subtype, **extra)

    def interrupt(self) -> str:
        text = {"type": "text", "text": "[Request interrupted by user]"}
        return self.line("user", message={"role": "user", "content": [text]})

    def marker(self, kind: str, **extra: Any) -> None:
        self.lines.append({"type": kind, "sessionId": self.session, **extra})

    def line(self, kind: str, *, parent: str | None = "", uuid: str = "", at: int | None = None, **extra: Any) -> str:
        number = next(self._numbers)
        uuid = uuid or f"{self.session}-{number}"
        moment = number if at is None else at
        self.lines.append(
            {
                "type": kind,
                "uuid": uuid,
                "parentUuid": self._last if parent == "" else parent,
                "sessionId": self.session,
                "cwd": "/home/dev/shop",
                "version": "2.1.207",
                "gitBranch": "main",
                "isSidechain": False,
                "timestamp": f"2026-09-01T10:{moment // 60:02}:{moment % 60:02}.000Z",
                **extra,
            }
        )
        self._last = uuid
        return uuid

    def data(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)


def read_scripts(**scripts: Script) -> dict[str, Conversation]:
    """Read invented files in the given order: `s1=Script(...)` is the file s1.jsonl."""
    reader = ClaudeReader()
    steps: list[Step] = []
    for name, script in scripts.items():
        steps += reader.read(f"{name}.jsonl", LineSplitter().feed(script.data()))
    return folded([*steps, *reader.settle()])

"""pi: session files become conversations (T1, T2). Pure.

A file is a true tree: every line names its parent, and a line of content under one that has content after it begins a branch.
Labels, names and changes of the model hang in the tree too; they are no content and branch nothing. The first version had no
ids and was linear; pi rewrites such a file in place, and its lines are then known again by what they say.
"""

import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from lineage.transcripts.claude_lines import name_in, parsed_time
from lineage.transcripts.content import Call, Content
from lineage.transcripts.digests import digest_of
from lineage.transcripts.faults import fault_entry
from lineage.transcripts.lines import Fault, Line
from lineage.transcripts.pi_entries import blocks_from, entry_content, state_after
from lineage.transcripts.plan import OpenedKind, Place, PlannedEntry, RunState, Source, Step, TitleRank
from lineage.transcripts.tables import Tables
from lineage.transcripts.tools import flat, text_of
from lineage.transcripts.writing import Writing

TITLE = 80
_CONTENT = frozenset({"message", "compaction", "branch_summary", "custom_message"})  # what can begin a branch
_SILENT = frozenset({"label", "session_info", "model_change", "thinking_level_change", "custom"})


class FileState(msgspec.Struct, array_like=True):
    """What is remembered of one file. A node is (conversation, ordinal, whether that entry is the line's own)."""

    session: str = ""
    folder: str = ""
    cwd: str = ""
    end: int = 0  # bytes read; a line before it is read again
    last: tuple[str, int, bool] = ("", 0, False)  # of the line before
    current: str = ""  # the conversation that the file last added to
    parent_file: str = ""
    copying: bool = False  # the lines so far are all the parent file's
    clock: str = ""
    prompted: str = ""


class PiReader:
    """Reads the files of one folder of pi sessions, in pieces as they grow."""

    def __init__(self) -> None:
        self.memory = Tables()
        self._name = ""
        self._file = FileState()
        self._writing = Writing(self.memory)

    def tell_meta(self, name: str, meta: dict[str, Any]) -> None:
        """pi writes nothing beside its files."""

    def is_ready(self, name: str, lines: Sequence[Line]) -> bool:
        return True

    def settle(self) -> list[Step]:
        return []

    def home_of(self, name: str) -> str:
        found = self.memory.get("file", name)
        if found is None:
            return ""
        file = msgspec.convert(found, FileState)
        return file.session if self.memory.get("conversation", file.session) is not None else file.current

    def read(self, name: str, lines: Sequence[Line]) -> list[Step]:
        """The steps that these further lines of the file add."""
        before = self.memory.get("file", name)
        self._name = name
        self._file = msgspec.convert(before, FileState) if before is not None else FileState()
        self._writing = Writing(self.memory)
        for line in lines:
            if line.value is not None:
                self._read_value(line, line.value)
            elif line.fault != Fault.BLANK and self._file.current:
                self._append_fault(line)
            self._file.end = max(self._file.end, line.offset + line.size)
        steps = self._writing.close()
        after = msgspec.to_builtins(self._file)
        if after != before:
            self.memory.put("file", name, after)
        return steps

    def _read_value(self, line: Line, value: dict[str, Any]) -> None:
        file, kind = self._file, name_in(value, "type")
        if kind == "session":
            self._begin_file(value)
            return
        said = _said_digest(value)
        name = name_in(value, "id") or f"#{said}"
        known = self._known(line, name, said)
        if known is not None:
            self._put_node(name, said, known)
            return
        parent, orphan = self._parent(value)
        if kind in _SILENT:
            self._silent(kind, value, parent)
            self._put_node(name, said, (parent[0], parent[1], False))
            return
        file.clock = value["timestamp"] if parsed_time(value.get("timestamp")) else file.clock
        calls = self.memory.get("calls", self._name) or {}
        asked = {call: Call(told, parsed_time(clock)) for call, (told, clock) in calls.items()}
        content = entry_content(value, folder=file.folder, calls=asked)
        if content is None:
            self._put_node(name, said, (parent[0], parent[1], False))
            return
        key = self._conversation(kind, name, parent, value)
        if orphan:
            content.data = content.data | {"orphan": orphan}
        ordinal = self._write(line, value, key, content)
        self._put_node(name, said, (key, ordinal, True))

    def _begin_file(self, header: dict[str, Any]) -> None:
        file = self._file
        if file.session:
            return  # the file is read again
        file.session = f"session:{name_in(header, 'id') or self._name}"
        file.folder = file.cwd = name_in(header, "cwd")
        file.last = (file.session, 0, False)
        parent = name_in(header, "parentSession") or name_in(header, "branchedFrom")
        name = PurePath(parent).name if parent else ""
        if name and self.memory.get("file", name) is not None:
            file.parent_file, file.copying = name, True

    def _known(self, line: Line, name: str, said: str) -> tuple[str, int, bool] | None:
        """The node of a line that was read before: in this file, or in the file that this one was forked from."""
        file = self._file
        found = self.memory.get(f"node:{self._name}", name)
        if found is None and line.offset < file.end:
            found = self.memory.get(f"said:{self._name}", said)
        if found is None and file.copying:
            found = self.memory.get(f"said:{file.parent_file}", said)
            file.copying = found is not None
        return (found[0], found[1], found[2]) if found is not None else None

    def _put_node(self, name: str, said: str, node: tuple[str, int, bool]) -> None:
        self._file.last = node
        if self.memory.get(f"node:{self._name}", name) is None:
            self.memory.put(f"node:{self._name}", name, list(node))
        if self.memory.get(f"said:{self._name}", said) is None:
            self.memory.put(f"said:{self._name}", said, list(node))

    def _parent(self, value: dict[str, Any]) -> tuple[tuple[str, int, bool], str]:
        """(node of the parent, its id when that was never written). Without ids a line follows the one before it."""
        file = self._file
        home = file.session or f"session:{self._name}"
        if "parentId" not in value:
            return (file.last if file.last[0] else (home, 0, False)), ""
        above = name_in(value, "parentId")
        if not above:
            return (home, 0, False), ""
        found = self.memory.get(f"node:{self._name}", above)
        if found is not None:
            return (found[0], found[1], found[2]), ""
        kept = self._writing.kept(file.current) if file.current else None
        return (file.current, kept.count, False) if kept is not None else (home, 0, False), above

    def _silent(self, kind: str, value: dict[str, Any], parent: tuple[str, int, bool]) -> None:
        writing, file = self._writing, self._file
        if kind == "session_info" and text_of(value, "name"):
            key = file.session if writing.kept(file.session) else file.current
            if key:
                writing.title(key, flat(text_of(value, "name"), TITLE), TitleRank.PERSON)
        if kind == "model_change" and writing.kept(parent[0]):
            writing.model(parent[0], name_in(value, "modelId"))

    def _conversation(self, kind: str, name: str, parent: tuple[str, int, bool], value: dict[str, Any]) -> str:
        """Where the line goes: on in its parent's conversation, or into a new one."""
        writing, file = self._writing, self._file
        key, ordinal, _ = parent
        kept = writing.kept(key)
        moment = parsed_time(file.clock)
        if kept is None:
            writing.begin(key, OpenedKind.SESSION, folder=file.folder, time=moment)
        elif kind in _CONTENT and (ordinal < kept.content or not self._is_own(key)):
            branch = f"branch:{file.session.removeprefix('session:')}/{name}"
            writing.begin(branch, OpenedKind.BRANCH, parent=Place(key, ordinal), folder=file.folder, time=moment)
            self._leave(branch)
            self.memory.put(f"own:{self._name}", branch, True)
            return branch
        self._leave(key)
        return key

    def _is_own(self, key: str) -> bool:
        return key == self._file.session or self.memory.get(f"own:{self._name}", key) is True

    def _leave(self, key: str) -> None:
        """A file runs one conversation at a time: one that it leaves for another is not running any more."""
        left = self._file.current
        if left and left != key and self._writing.known(left).state == RunState.RUNNING:
            self._writing.state(left, RunState.IDLE)
        self._file.current = key

    def _write(self, line: Line, value: dict[str, Any], key: str, content: Content) -> int:
        writing, file = self._writing, self._file
        head = content.kind == "compaction"
        keeps = self._kept_from(value) if head else None
        entry = PlannedEntry(
            kind=content.kind,
            source=Source(line.offset, line.size),
            model=content.model,
            data=content.data | ({"cwd": file.cwd} if not writing.known(key).count and file.cwd else {}),
            time=parsed_time(file.clock),
            head=head,
            keeps=keeps,
            outcome=content.outcome,
            prompt=content.prompt,
            usage=content.usage,
            uuid=name_in(value, "id"),
            ends_turn=state_after(value) in ((RunState.IDLE, ""), (RunState.IDLE, "interrupted")),
            **self._edit(value),
        )
        ordinal = writing.append(key, entry, notice=name_in(value, "type") not in _CONTENT)
        if content.prompt:
            line_of = flat(content.prompt, TITLE)
            if key == file.session:
                file.prompted = file.prompted or line_of
                writing.title(key, file.prompted, TitleRank.PROMPT)
            elif not writing.known(key).title:
                writing.title(key, line_of, TitleRank.PROMPT)
        if content.model_name:
            writing.model(key, content.model_name)
        if content.asked or content.answered:
            calls = dict(self.memory.get("calls", self._name) or {})
            calls |= {call: [tool, file.clock] for call, tool, _ in content.asked}
            for call in content.answered:
                calls.pop(call, None)
            self.memory.put("calls", self._name, calls)
        state = state_after(value)
        if state is not None:
            writing.state(key, *state)
        return ordinal

    def _kept_from(self, value: dict[str, Any]) -> Place | None:
        """The first entry that the model goes on reading after a compaction; none when all of them are summed up."""
        found = self.memory.get(f"node:{self._name}", name_in(value, "firstKeptEntryId"))
        if found is None:
            return None
        key, ordinal, own = found
        first = ordinal if own else ordinal + 1
        kept = self._writing.kept(key)
        return Place(key, first) if kept is not None and 1 <= first <= kept.count else None

    def _edit(self, value: dict[str, Any]) -> dict[str, Any]:
        """What a context edit does to its target."""
        if value.get("type") != "context_edit":
            return {}
        found = self.memory.get(f"node:{self._name}", name_in(value, "targetId"))
        if found is None or not found[2]:
            return {}
        place, replacement = Place(found[0], found[1]), value.get("replacement")
        if replacement is None:
            return {"omits": (place,)}
        content = replacement.get("content") if isinstance(replacement, dict) else replacement
        role = "assistant" if isinstance(replacement, dict) and replacement.get("role") == "assistant" else "user"
        return {"replaces": ((place, [{"role": role, "content": blocks_from(content)}]),)}

    def _append_fault(self, line: Line) -> None:
        name = f"#{digest_of(line.raw or str(line.size).encode()).hex()}"
        if self.memory.get(f"node:{self._name}", name) is None:
            key = self._file.current
            entry = fault_entry("pi", line, parsed_time(self._file.clock), name)
            ordinal = self._writing.append(key, entry, notice=True)
            self.memory.put(f"node:{self._name}", name, [key, ordinal, True])


def _said_digest(value: dict[str, Any]) -> str:
    """What a line says, whatever ids it has been given since."""
    message = value.get("message")
    said = message if isinstance(message, dict) else {k: v for k, v in value.items() if k not in ("id", "parentId")}
    try:
        text = msgspec.json.encode([value.get("type"), said], order="sorted")
    except UnicodeEncodeError:  # an unpaired surrogate
        text = json.dumps([value.get("type"), said], sort_keys=True).encode()
    return digest_of(text).hex()

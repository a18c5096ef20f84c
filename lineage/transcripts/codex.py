"""Codex: rollouts become conversations (T1, T2). Pure.

A rollout is linear and has no ids for its lines. It branches where turns were rolled back and where another file was forked
from it: a fork copies the lines of its origin, or names the line that it goes on after. Subagents have files of their own.
"""

from collections.abc import Iterator, Sequence
from struct import Struct as Packed
from typing import Any

import msgspec

from lineage.transcripts.claude_lines import name_in, parsed_time
from lineage.transcripts.codex_entries import compaction_content, event_content, facts_of, item_content
from lineage.transcripts.codex_lines import call_id, line_digest, normalised, parent_of
from lineage.transcripts.content import Call, Content
from lineage.transcripts.digests import digest_of
from lineage.transcripts.faults import fault_entry
from lineage.transcripts.lines import Fault, Line
from lineage.transcripts.plan import OpenedKind, Place, PlannedEntry, PlannedUsage, RunState, Source, Step, TitleRank
from lineage.transcripts.retries import REMEMBERED, says_again
from lineage.transcripts.tables import Tables
from lineage.transcripts.tools import call_line, flat, text_of
from lineage.transcripts.writing import Writing

TITLE = 80
_KNOWN_TYPES = frozenset(
    {"world_state", "inter_agent_communication", "inter_agent_communication_metadata", "token_usage_record"}
)
_NOTICES = frozenset(
    {"codex.unknown", "codex.unreadable", "codex.rolled_back", "codex.review", "codex.meta", "turn_end"}
)
_QUESTIONS = frozenset({"request_user_input"})
_WAITS = frozenset({"wait", "wait_agent", "spawn_agent"})
_RECORD = Packed("<8sHI")  # of a line: its digest, the number of its conversation in the file, the ordinal after it


class FileState(msgspec.Struct):
    """What is remembered of one file. A place is (conversation, ordinal)."""

    thread: str = ""
    kind: OpenedKind = OpenedKind.SESSION
    parent: str = ""  # the thread that this one hangs on
    copying: bool = False  # the lines so far are all the parent's
    at: tuple[str, int] = ("", 0)
    turns: list[tuple[str, int, str]] = []  # of each prompt on the path: the place before it, and its text
    keys: list[str] = []  # conversations, by their number in the records
    folder: str = ""
    cwd: str = ""
    told_cwd: str = ""
    git_branch: str = ""
    version: str = ""
    role: str = ""
    model: str = ""
    clock: str = ""
    end: int = 0  # bytes read; a line before it is read again
    tokens: list[int] | None = None  # totals so far: input, cached, written to the cache, output
    unused: list[int] = []  # counted since the last entry
    prompted: str = ""
    waits: list[str] = []  # calls that wait for a person or for a child


class CodexReader:
    """Reads the rollouts of one Codex home, in pieces as they grow."""

    def __init__(self) -> None:
        self.memory = Tables()
        self._name = ""
        self._file = FileState()
        self._writing = Writing(self.memory)
        self._lines: dict[str, dict[bytes, tuple[str, int]]] = {}

    def tell_meta(self, name: str, meta: dict[str, Any]) -> None:
        """Codex writes nothing beside its files."""

    def is_ready(self, name: str, lines: Sequence[Line]) -> bool:
        """A fork and a subagent wait until the thread that they hang on has been read."""
        if self.memory.get("file", name) is not None:
            return True
        found = next((normalised(line.value) for line in lines if line.value is not None), None)
        parent = parent_of(found[1])[0] if found is not None and found[0] == "session_meta" else ""
        return not parent or self.memory.get("thread", parent) is not None

    def settle(self) -> list[Step]:
        """Subagents whose call was found after their file."""
        writing = Writing(self.memory)
        for thread in self.memory.keys("agent"):
            kept, place = writing.kept(_key(thread)), self._call_place(thread)
            if kept is not None and kept.kind == OpenedKind.AGENT and not kept.owner_ordinal and place is not None:
                writing.link(_key(thread), place, self.memory.get("agent", thread))
        return writing.close()

    def home_of(self, name: str) -> str:
        found = self.memory.get("file", name)
        key = _key(found["thread"]) if found is not None else ""
        return key if self.memory.get("conversation", key) is not None else ""

    def read(self, name: str, lines: Sequence[Line]) -> list[Step]:
        """The steps that these further lines of the file add."""
        before = self.memory.get("file", name)
        self._name = name
        self._file = msgspec.convert(before, FileState) if before is not None else FileState()
        self._writing, self._lines = Writing(self.memory), {}
        for line in lines:
            if line.value is not None:
                self._read_value(line, line.value)
            elif line.fault != Fault.BLANK and self._writing.kept(self._file.at[0]):
                self._append_fault(line)
            self._file.end = max(self._file.end, line.offset + line.size)
        steps = self._writing.close()
        after: Any = msgspec.to_builtins(self._file)
        if after != before:
            self.memory.put("file", name, after)
        return steps

    def _read_value(self, line: Line, value: dict[str, Any]) -> None:
        file, found = self._file, normalised(value)
        if found is None:
            return
        kind, payload = found
        said = line_digest(value)
        if parsed_time(value.get("timestamp")) is not None:
            file.clock = value["timestamp"]
        if kind == "session_meta" and not file.thread:
            self._begin_file(payload)
        elif line.offset < file.end and said in self._known(file.thread):
            return  # the file is read again
        elif file.copying and self._is_copied(kind, payload, said):
            pass
        else:
            file.copying = False
            self._read_line(line, kind, payload)
        self._record(said)

    def _begin_file(self, meta: dict[str, Any]) -> None:
        file = self._file
        file.thread = name_in(meta, "id") or self._name
        file.folder = file.cwd = name_in(meta, "cwd")
        git = meta.get("git")
        file.git_branch = name_in(git, "branch") if isinstance(git, dict) else ""
        file.version = name_in(meta, "cli_version")
        file.role = name_in(meta, "agent_role") or name_in(meta, "agent_nickname")
        known = self.memory.get("thread", file.thread)
        if known is not None:  # the same thread, moved to the archive or written anew under another name
            self.memory.put("thread", file.thread, self._name)
            self._file = msgspec.convert(self.memory.get("file", known), FileState)
            self._file.end = 1 << 62
            return
        self.memory.put("thread", file.thread, self._name)
        parent, agent = parent_of(meta)
        if not parent or self.memory.get("thread", parent) is None:
            file.at = (_key(file.thread), 0)
            return
        file.parent = parent
        file.kind = OpenedKind.AGENT if agent else OpenedKind.BRANCH
        file.at = (_key(parent), 0)
        file.copying = True
        base = meta.get("history_base")
        if isinstance(base, dict) and isinstance(base.get("end_ordinal_exclusive"), int):
            places = list(self._places(name_in(base, "thread_id") or parent))
            end = min(base["end_ordinal_exclusive"], len(places))
            file.at = places[end - 1][1] if end > 0 else file.at
            file.copying = False

    def _is_copied(self, kind: str, payload: dict[str, Any], said: bytes) -> bool:
        """Whether the line is the parent's; then this file goes on from there."""
        file = self._file
        found = self._known(file.parent).get(said)
        if kind == "session_meta":
            return name_in(payload, "id") == file.parent or found is not None
        if found is None:
            return False
        if kind == "response_item" and payload.get("type") == "message":
            content = item_content(payload, folder=file.folder, calls={}, facts={})
            if content is not None and content.prompt:
                file.turns.append((*file.at, content.prompt))
        if kind == "event_msg" and payload.get("type") == "token_count":
            self._count(payload, copied=True)
        file.at = found
        return True

    def _read_line(self, line: Line, kind: str, payload: dict[str, Any]) -> None:
        file = self._file
        if kind == "response_item":
            calls = self._calls()
            facts = self.memory.get("facts", call_id(payload)) or {}
            self._write(line, item_content(payload, folder=file.folder, calls=calls, facts=facts))
        elif kind == "event_msg":
            self._read_event(line, payload)
        elif kind == "compacted":
            self._write(line, compaction_content(payload))
        elif kind == "turn_context":
            file.cwd = name_in(payload, "cwd") or file.cwd
            file.model = name_in(payload, "model") or file.model
        elif kind != "session_meta" and kind not in _KNOWN_TYPES:
            data = {"type": kind[:80], "keys": sorted(map(str, payload))[:40]}
            self._write(line, Content(kind="codex.unknown", data=data))

    def _read_event(self, line: Line, event: dict[str, Any]) -> None:
        kind = name_in(event, "type")
        if kind == "token_count":
            self._count(event)
            return
        self._link(kind, event)
        facts = facts_of(event)
        if facts is not None:
            self.memory.put("facts", facts[0], facts[1])
            return
        key = self._file.at[0]
        if kind == "thread_name_updated" and self._writing.kept(_key(self._file.thread)):
            self._writing.title(_key(self._file.thread), flat(text_of(event, "thread_name"), TITLE), TitleRank.PERSON)
        content = event_content(event)
        if content is not None and self._writing.kept(key):
            self._write(line, content)
        if kind == "thread_rolled_back":
            self._roll_back(event)

    def _link(self, kind: str, event: dict[str, Any]) -> None:
        """Events name the thread of a subagent that a call has started."""
        thread = name_in(event, "new_thread_id")
        if kind == "collab_agent_spawn_end" and thread and call_id(event):
            self.memory.put("agent", thread, call_id(event))

    def _roll_back(self, event: dict[str, Any]) -> None:
        """The last turns are off the path: what comes next goes on from before them."""
        turns, count = self._file.turns, event.get("num_turns")
        gone = turns[-count:] if isinstance(count, int) and count > 0 else turns[-1:]
        if gone:
            self._file.turns = turns[: len(turns) - len(gone)]
            self._file.at = (gone[0][0], gone[0][1])

    def _count(self, event: dict[str, Any], *, copied: bool = False) -> None:
        """Tokens since the last count. The same totals are written again and again; a fork's go on from its origin's."""
        info = event.get("info")
        if not isinstance(info, dict):
            return
        totals, last = _tokens(info.get("total_token_usage")), _tokens(info.get("last_token_usage"))
        if totals is None:
            return
        before = self._file.tokens
        self._file.tokens = totals
        if copied or totals == before:
            return
        new = last or totals if before is None else [max(0, a - b) for a, b in zip(totals, before, strict=True)]
        unused = self._file.unused or [0] * len(new)
        self._file.unused = [a + b for a, b in zip(unused, new, strict=True)]

    def _write(self, line: Line, content: Content | None) -> None:
        if content is None:
            return
        writing, file = self._writing, self._file
        notice = content.kind in _NOTICES
        key, omits = self._conversation(content, notice)
        head = content.kind == "compaction"
        state, why = self._state(content)
        entry = PlannedEntry(
            kind=content.kind,
            source=Source(line.offset, line.size),
            model=content.model,
            data=content.data | self._changes() | ({"retry": True} if omits else {}),
            time=parsed_time(file.clock),
            head=head,
            omits=tuple(Place(key, ordinal) for ordinal in omits),
            prompt=content.prompt,
            usage=self._usage(line),
            uuid=f"{file.thread}@{line.offset}",
            ends_turn=content.kind in ("turn_end", "codex.interrupted"),
        )
        before = file.at
        ordinal = writing.append(key, entry, notice=notice)
        if not notice or before[0] == key:
            file.at = (key, ordinal)
        kept = writing.known(key)
        if content.prompt:
            self._note_prompt(key, ordinal, content.prompt, before, retry=bool(omits))
        if content.kind == "codex.interrupted" or content.data.get("failed") or content.kind == "codex.error":
            kept.cut_short = True
        writing.model(key, file.model)
        for call, tool, given in content.asked:
            self.memory.put("call", call, [key, ordinal, tool, file.clock])
            self._note_wait(call, tool, given)
        for call in content.answered:
            file.waits = [one for one in file.waits if one != call]
            self._forget(call, text_of_result(content))
        if state is not None:
            writing.state(key, state, why)

    def _conversation(self, content: Content, notice: bool) -> tuple[str, tuple[int, ...]]:
        """(where the line goes, the entries of a failed attempt that it takes the place of)."""
        writing, file = self._writing, self._file
        (key, ordinal), home = file.at, _key(file.thread)
        moment = parsed_time(file.clock)
        if file.kind == OpenedKind.AGENT and writing.kept(home) is None:
            place = self._call_place(file.thread) or Place(_key(file.parent), 0)
            call = self.memory.get("agent", file.thread) or ""
            file.turns = []
            if writing.kept(place.conversation) is None:
                return writing.begin(home, OpenedKind.SESSION, folder=file.folder, time=moment), ()
            return writing.begin(home, OpenedKind.AGENT, owner=place, call=call, folder=file.folder, time=moment), ()
        kept = writing.kept(key)
        if kept is None:
            return writing.begin(key, OpenedKind.SESSION, folder=file.folder, time=moment), ()
        if file.kind == OpenedKind.BRANCH and writing.kept(home) is None:
            return writing.begin(
                home, OpenedKind.BRANCH, parent=Place(key, ordinal), folder=file.folder, time=moment
            ), ()
        if notice or ordinal >= kept.content:
            return key, ()
        if content.prompt and kept.last_prompt > ordinal:
            again = says_again(
                flat(content.prompt, REMEMBERED),
                kept.last_text,
                unfinished=kept.cut_short or kept.last_prompt == kept.content,
            )
            if again:
                return key, tuple(range(kept.last_prompt, kept.count + 1))
        branch = f"branch:{file.thread}@{len(file.keys)}.{ordinal}"
        writing.state(key, RunState.IDLE)
        return writing.begin(branch, OpenedKind.BRANCH, parent=Place(key, ordinal), folder=file.folder, time=moment), ()

    def _note_prompt(self, key: str, ordinal: int, prompt: str, before: tuple[str, int], *, retry: bool) -> None:
        writing, file = self._writing, self._file
        kept = writing.known(key)
        kept.last_prompt, kept.last_text, kept.cut_short = ordinal, flat(prompt, REMEMBERED), False
        place = before if before[0] == key or not retry else (key, before[1])
        file.turns.append((place[0] or key, place[1], kept.last_text[:TITLE]))
        line = flat(prompt, TITLE)
        if key == _key(file.thread):
            file.prompted = file.prompted or line
            title = f"{file.role}: {file.prompted}" if file.kind == OpenedKind.AGENT and file.role else file.prompted
            writing.title(key, flat(title, TITLE), TitleRank.PROMPT)
        elif not kept.title:
            writing.title(key, line, TitleRank.PROMPT)

    def _note_wait(self, call: str, tool: str, given: dict[str, Any]) -> None:
        if tool in _QUESTIONS:
            self._file.waits = [*self._file.waits, call]
            self.memory.put("question", call, flat(call_line(tool, given)))
        elif tool in _WAITS:
            self._file.waits = [*self._file.waits, call]

    def _forget(self, call: str, text: str) -> None:
        """The call has its result. One that started a subagent is kept: its result names the thread."""
        place = self.memory.get("call", call)
        for table in ("facts", "question"):
            if self.memory.get(table, call) is not None:
                self.memory.put(table, call, None)
        if place is None or place[2] != "spawn_agent":
            if place is not None:
                self.memory.put("call", call, None)
            return
        try:
            told = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return
        thread = name_in(told, "agent_id") if isinstance(told, dict) else ""
        if thread and self.memory.get("agent", thread) is None:
            self.memory.put("agent", thread, call)

    def _state(self, content: Content) -> tuple[RunState | None, str]:
        """What the thread does after this, by Codex's own marks (L8)."""
        file = self._file
        if content.kind == "turn_end":
            file.waits = []
            return (RunState.FAILED, str(content.data["text"])) if content.data.get("failed") else (RunState.IDLE, "")
        if content.kind == "codex.interrupted":
            file.waits = []
            return RunState.IDLE, "interrupted"
        if content.kind == "codex.error":
            return RunState.FAILED, flat(str(content.data["text"]))
        if content.prompt or content.kind in ("assistant", "tool_result"):
            waits = [*file.waits, *(call for call, tool, _ in content.asked if tool in _QUESTIONS | _WAITS)]
            waits = [call for call in waits if call not in content.answered]
            for _, tool, given in content.asked:
                if tool in _QUESTIONS:
                    return RunState.ANSWER, flat(call_line(tool, given))
            asked = next(
                (self.memory.get("question", call) for call in waits if self.memory.get("question", call)), None
            )
            if asked is not None:
                return RunState.ANSWER, asked
            return (RunState.CHILD, "") if waits else (RunState.RUNNING, "")
        return None, ""

    def _changes(self) -> dict[str, Any]:
        """Folder, git branch and version of the program, on the first entry and wherever the folder changes."""
        file, changed = self._file, {}
        if file.cwd and file.cwd != file.told_cwd:
            first = not file.told_cwd
            file.told_cwd = changed["cwd"] = file.cwd
            if first:
                changed |= {k: v for k, v in (("git_branch", file.git_branch), ("version", file.version)) if v}
        return changed

    def _usage(self, line: Line) -> PlannedUsage | None:
        """The tokens counted since the last entry: Codex counts between its items, not on them."""
        unused, self._file.unused = self._file.unused, []
        if not any(unused):
            return None
        read, cached, written, output = unused
        return PlannedUsage(
            message_id=f"{self._file.thread}@{line.offset}",
            model=self._file.model,
            input_tokens=max(0, read - cached - written),
            output_tokens=output,
            cache_read_tokens=cached,
            cache_write_tokens=written,
        )

    def _calls(self) -> dict[str, Call]:
        return _Calls(self.memory)

    def _call_place(self, thread: str) -> Place | None:
        """The entry that started a subagent."""
        found = self.memory.get("call", self.memory.get("agent", thread) or "")
        return Place(found[0], found[1]) if found is not None else None

    def _record(self, said: bytes) -> None:
        """Note the line, so that a copy of it is known."""
        file = self._file
        key, ordinal = file.at
        if key not in file.keys:
            file.keys = [*file.keys, key]
        self.memory.extend(f"lines:{file.thread}", _RECORD.pack(said, file.keys.index(key), ordinal))

    def _places(self, thread: str) -> Iterator[tuple[bytes, tuple[str, int]]]:
        """(digest, place after it) of each line of a thread."""
        keys = self._file.keys
        if thread != self._file.thread:
            name = self.memory.get("thread", thread)
            keys = self.memory.get("file", name)["keys"] if name is not None else []
        for said, number, ordinal in _RECORD.iter_unpack(self.memory.row(f"lines:{thread}")):
            yield said, (keys[number], ordinal)

    def _known(self, thread: str) -> dict[bytes, tuple[str, int]]:
        if thread not in self._lines:
            self._lines[thread] = dict(self._places(thread))
        return self._lines[thread]

    def _append_fault(self, line: Line) -> None:
        name = digest_of(line.raw or str(line.size).encode()).hex()
        if self.memory.get(f"fault:{self._file.thread}", name) is None:
            self.memory.put(f"fault:{self._file.thread}", name, True)
            key = self._file.at[0]
            entry = fault_entry("codex", line, parsed_time(self._file.clock), f"{self._file.thread}#{name}")
            ordinal = self._writing.append(key, entry, notice=True)
            if self._file.at[1] == ordinal - 1:
                self._file.at = (key, ordinal)


class _Calls(dict[str, Call]):
    """Calls by id, looked up in the memory when they are asked for."""

    def __init__(self, memory: Tables) -> None:
        super().__init__()
        self._memory = memory

    def __contains__(self, call: object) -> bool:
        return self._memory.get("call", str(call)) is not None

    def __getitem__(self, call: str) -> Call:
        _, _, tool, clock = self._memory.get("call", call)
        return Call(tool, parsed_time(clock))


def text_of_result(content: Content) -> str:
    """The text of the first result of an entry."""
    for message in content.model or ():
        for block in message["content"]:
            texts = [part.get("text", "") for part in block.get("content") or () if isinstance(part, dict)]
            return "\n".join(texts)
    return ""


def _tokens(told: Any) -> list[int] | None:
    if not isinstance(told, dict):
        return None
    names = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
    values = [told.get(name) for name in names]
    return [value if isinstance(value, int) and 0 <= value < 2**53 else 0 for value in values]


def _key(thread: str) -> str:
    return f"thread:{thread}"

"""What a reader of Claude Code lines must remember to place the next one, as a fold over small records. Pure.

`taken()` gives the records since the last time; an import stores them with the lines, and `recall` folds them again, so that
a file that has grown goes on where it was, in another process, without reading its beginning.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from enum import IntEnum
from typing import Any

import msgspec

from lineage.transcripts.content import Call
from lineage.transcripts.plan import OpenedKind, PlannedEntry, RunState, TitleRank

TYPED, RESULT, MODEL, OMITTED = 1, 2, 4, 8  # flags of one entry


class Node(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Where a line stands: after entry `ordinal`. `anchor` names the nearest line, itself or above, that is no mere notice."""

    conversation: int
    ordinal: int
    anchor: str


class Typed(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A typed prompt under an anchor, its text with white space collapsed and cut."""

    text: str
    conversation: int
    ordinal: int


class AgentCall(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A call that starts a subagent; `said` is the digest of its prompt."""

    conversation: int
    ordinal: int
    said: bytes


class Answered(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The result of a call has been read: its clock as written, and its place."""

    clock: str
    conversation: int
    ordinal: int
    call_ordinal: int


class Branch(msgspec.Struct, gc=False):
    """One conversation of the plan while it is read (a session, a branch, or an agent's)."""

    key: str
    kind: OpenedKind
    parent: tuple[int, int] | None = None
    owner: tuple[int, int] | None = None  # ordinal 0: its call is not known yet
    call: str = ""
    agent: str = ""
    folder: str = ""
    shown: bool = False  # it was opened in the plan; until a first real entry it holds notices back
    held: list[PlannedEntry] = []
    last_typed: int = 0
    state: RunState = RunState.IDLE
    why: str = ""
    title: str = ""
    rank: TitleRank = TitleRank.PROMPT
    model: str = ""
    waits: dict[str, RunState] = {}  # calls without a result, and the state they mean
    cut_short: bool = False  # the last turn was interrupted or failed
    boundary: PlannedEntry | None = None  # a compaction whose summary has not come
    kept: list[str] = []  # lines that this compaction keeps
    told: str = ""  # the state that the plan has last said


class FileState(msgspec.Struct, gc=False):
    """What is remembered of one file."""

    current: int = -1  # the conversation of the last line that was placed
    wrote: int = -1  # the conversation that this file last added to
    home: int = -1  # the conversation that this file's titles are of
    fork: bool = False
    session: str = ""
    folder: str = ""  # where it began
    cwd: str = ""  # where it is
    git_branch: str = ""
    version: str = ""
    time: datetime | None = None
    titles: dict[str, str] = {}
    prompted: str = ""  # the first prompt
    queued: list[bytes] = []
    agent: str = ""


class AgentMeta(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What the file beside an agent's file says."""

    parent: str = ""
    type: str = ""
    description: str = ""


class _Op(IntEnum):
    NODE = 0
    ENTRY = 1
    TYPED = 2
    SAID = 3
    ASKED = 5
    ANSWERED = 6
    AGENT_CALL = 7
    AGENT = 8
    DONE = 9
    BRANCH = 10
    FILE = 11
    FLAG = 12
    HOME_OF = 13
    META = 14
    BACKGROUND = 15


class Memory:
    """The fold. Every change goes through a method that also notes the record."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.flags: list[bytearray] = []  # by conversation: one byte for each entry
        self.branches: list[Branch] = []
        self.by_key: dict[str, int] = {}
        self.typed: dict[str, list[Typed]] = {}
        self.said: dict[str, str] = {}
        self.asked: dict[str, tuple[Call, int, int]] = {}  # calls without a result
        self.answered: dict[str, Answered] = {}
        self.agent_calls: dict[str, AgentCall] = {}
        self.agents: dict[str, str] = {}  # agent id -> call
        self.claimed: set[str] = set()
        self.done: dict[str, str] = {}  # agent id -> clock of its end
        self.metas: dict[str, AgentMeta] = {}
        self.background: set[str] = set()  # calls whose agents outlive the turn
        self.owned: dict[int, list[int]] = {}  # conversation -> the agents' that it owns
        self.ended: set[str] = set()  # agents whose end was read since the plan last told of it
        self.files: dict[str, FileState] = {}
        self.session_homes: dict[str, int] = {}  # session id or file stem -> its conversation
        self._log: list[list[Any]] = []
        self._quiet = False

    def taken(self) -> bytes:
        """The records since the last call, as bytes for `recall`."""
        log, self._log = self._log, []
        return msgspec.msgpack.encode(log)

    def recall(self, pieces: Iterable[bytes]) -> None:
        """Fold records of an earlier reading, oldest first."""
        fold: dict[int, Callable[..., Any]] = {
            _Op.NODE: lambda uuid, c, o, anchor: self.put_node(uuid, Node(c, o, anchor)),
            _Op.ENTRY: self.put_entry,
            _Op.TYPED: lambda anchor, text, c, o: self.put_typed(anchor, Typed(text, c, o)),
            _Op.SAID: self.put_said,
            _Op.ASKED: lambda call, name, clock, c, o: self.put_asked(
                call, Call(name, datetime.fromisoformat(clock) if clock else None), c, o
            ),
            _Op.ANSWERED: lambda call, clock, c, o: self.put_answered(call, clock, c, o),
            _Op.AGENT_CALL: lambda call, c, o, said: self.put_agent_call(call, AgentCall(c, o, said)),
            _Op.AGENT: self.put_agent,
            _Op.DONE: self.put_done,
            _Op.BRANCH: lambda number, raw: self.put_branch(number, msgspec.msgpack.decode(raw, type=Branch)),
            _Op.FILE: lambda name, raw: self.put_file(name, msgspec.msgpack.decode(raw, type=FileState)),
            _Op.FLAG: self.put_flag,
            _Op.HOME_OF: self.put_home,
            _Op.BACKGROUND: self.put_background,
            _Op.META: lambda agent, *told: self.put_meta(agent, AgentMeta(*told)),
        }
        self._quiet = True
        try:
            for piece in pieces:
                for op, *rest in msgspec.msgpack.decode(piece):
                    fold[op](*rest)
        finally:
            self._quiet = False
            self.ended.clear()

    def count(self, conversation: int) -> int:
        """How many entries the conversation has of its own."""
        return len(self.flags[conversation])

    def put_node(self, uuid: str, node: Node) -> None:
        self.nodes[uuid] = node
        self._note(_Op.NODE, uuid, node.conversation, node.ordinal, node.anchor)

    def put_entry(self, conversation: int, flags: int) -> int:
        """Count one more entry; answers its ordinal."""
        self.flags[conversation].append(flags)
        self._note(_Op.ENTRY, conversation, flags)
        return len(self.flags[conversation])

    def put_flag(self, conversation: int, ordinal: int, flag: int) -> None:
        self.flags[conversation][ordinal - 1] |= flag
        self._note(_Op.FLAG, conversation, ordinal, flag)

    def put_typed(self, anchor: str, typed: Typed) -> None:
        self.typed.setdefault(anchor, []).append(typed)
        self._note(_Op.TYPED, anchor, typed.text, typed.conversation, typed.ordinal)

    def put_said(self, key: str, uuid: str) -> None:
        self.said[key] = uuid
        self._note(_Op.SAID, key, uuid)

    def put_asked(self, call: str, asked: Call, conversation: int, ordinal: int) -> None:
        self.asked[call] = (asked, conversation, ordinal)
        clock = asked.time.isoformat() if asked.time else ""
        self._note(_Op.ASKED, call, asked.name, clock, conversation, ordinal)

    def put_answered(self, call: str, clock: str, conversation: int, ordinal: int) -> None:
        asked = self.asked.pop(call, None)
        self.answered[call] = Answered(
            clock, conversation, ordinal, asked[2] if asked and asked[1] == conversation else 0
        )
        self._note(_Op.ANSWERED, call, clock, conversation, ordinal)

    def put_agent_call(self, call: str, found: AgentCall) -> None:
        self.agent_calls[call] = found
        self._note(_Op.AGENT_CALL, call, found.conversation, found.ordinal, found.said)

    def put_agent(self, agent: str, call: str) -> None:
        self.agents[agent] = call
        self.claimed.add(call)
        self._note(_Op.AGENT, agent, call)

    def put_background(self, call: str) -> None:
        self.background.add(call)
        self._note(_Op.BACKGROUND, call)

    def put_done(self, agent: str, clock: str) -> None:
        self.done[agent] = clock
        self.ended.add(agent)
        self._note(_Op.DONE, agent, clock)

    def put_branch(self, number: int, branch: Branch) -> None:
        """Add a conversation, or note what changed in it."""
        if number == len(self.branches):
            self.branches.append(branch)
            self.flags.append(bytearray())
            self.by_key[branch.key] = number
        else:
            self.branches[number] = branch
        owned = self.owned.setdefault(branch.owner[0], []) if branch.owner else []
        if branch.owner and number not in owned:
            owned.append(number)
        self._note(_Op.BRANCH, number, b"" if self._quiet else msgspec.msgpack.encode(branch))

    def put_file(self, name: str, state: FileState) -> None:
        self.files[name] = state
        self._note(_Op.FILE, name, b"" if self._quiet else msgspec.msgpack.encode(state))

    def put_home(self, session: str, conversation: int) -> None:
        self.session_homes[session] = conversation
        self._note(_Op.HOME_OF, session, conversation)

    def put_meta(self, agent: str, meta: AgentMeta) -> None:
        self.metas[agent] = meta
        self._note(_Op.META, agent, meta.parent, meta.type, meta.description)

    def _note(self, *record: Any) -> None:
        if not self._quiet:
            self._log.append(list(record))

"""Claude Code: the raw lines of one project folder become conversations (T1, T2). Pure.

A file is a graph with noise: progress lines, parallel tools and replays have several children where nobody branched. So a line
is placed when it is read, by what it is and by the place of its parent:

- A line is one entry at most, at the end of its parent's conversation, also where the parent is not the last entry.
- Only a typed prompt starts a branch: its anchor (the nearest line above that is no mere notice) has another typed prompt under
  it, with another text; or its parent lies before a later turn of the same conversation. The branch forks at the parent.
- The same text sent again is a retry: it goes on in the conversation, and the model no longer reads the failed attempt.
- A line whose uuid is known, from whatever file of the project, is that line again. So is one with new uuids but the same clock
  and text, message id and block, or call id: these are written at restarts and compactions.

What follows only adds to what was: a plan never changes an earlier step, so numbers stay (R6).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from lineage.transcripts import claude_agents as agents
from lineage.transcripts.blocks import blocks_of, text_of_blocks
from lineage.transcripts.claude_compaction import flush_boundary, hold_boundary, keep_on, with_boundary
from lineage.transcripts.claude_draft import Draft
from lineage.transcripts.claude_entries import entry_content
from lineage.transcripts.claude_lines import Sort, content_of, name_in, sort_of, time_in, typed_text
from lineage.transcripts.claude_memory import OMITTED, Branch, FileState, Memory, Node, Typed
from lineage.transcripts.claude_places import MISSING, REAL, ROOT, Spot, has_home, replay_keys, said_text, spot_of
from lineage.transcripts.claude_states import close_agents, ends_turn, state_after
from lineage.transcripts.claude_titles import TITLE, name_agent, name_file, note_marker
from lineage.transcripts.content import Call, Content
from lineage.transcripts.digests import digest, digest_of
from lineage.transcripts.faults import fault_entry
from lineage.transcripts.lines import Fault, Line
from lineage.transcripts.plan import OpenedKind, Place, PlannedEntry, Source, Step, TitleRank, Used
from lineage.transcripts.tools import flat

_ANCHORS = REAL | {Sort.BOUNDARY}


class ClaudeReader:
    """Reads the files of one project folder, in pieces as they grow. `name` of a file is its path inside the folder."""

    def __init__(self) -> None:
        self.memory = Memory()
        self._name = ""
        self._file = FileState()
        self._draft = Draft(self.memory, self._file)

    def tell_meta(self, name: str, meta: dict[str, Any]) -> None:
        """What `agent-<id>.meta.json` says of the agent file `name`. It can come before or after the file itself."""
        agents.note_meta(self.memory, agents.agent_in(name), meta)

    def is_ready(self, name: str, lines: Sequence[Line]) -> bool:
        """Whether the file can be read now: a subagent's waits until the call that made it has been read."""
        agent = agents.agent_in(name)
        if name in self.memory.files or not agent:
            return True
        told = agents.told_in(lines)
        if told is not None and name_in(told, "toolUseId"):
            return agents.place_of(self.memory, name_in(told, "toolUseId")) is not None
        first = next((line.value for line in lines if line.value is not None and name_in(line.value, "uuid")), None)
        return first is not None and agents.owner_of(self.memory, agent, first) is not None

    def read(self, name: str, lines: Sequence[Line]) -> list[Step]:
        """The steps that these further lines of the file add."""
        before = self.memory.files.get(name)
        self._name = name
        self._file = msgspec.structs.replace(before) if before else FileState(agent=agents.agent_in(name))
        self._draft = Draft(self.memory, self._file)
        told = agents.told_in(lines) if self._file.agent else None
        if told is not None:
            agents.note_meta(self.memory, self._file.agent, told)
        for line in lines:
            if line.value is not None:
                self._read_value(line, line.value)
            elif line.fault != Fault.BLANK and self._file.current >= 0:
                self._append_fault(line)
        self._close()
        if self._file != before:
            self.memory.put_file(name, self._file)
        return self._draft.steps

    def home_of(self, name: str) -> str:
        """The key of the conversation that the file began, else of the one that it last added to; empty: of none."""
        file = self.memory.files.get(name)
        if file is None:
            return ""
        number = file.home if has_home(self.memory, file) else file.current
        return self.memory.branches[number].key if number >= 0 else ""

    def settle(self) -> list[Step]:
        """Steps that need no new line of a file: agents whose call was found after their file."""
        return agents.late_links(self.memory)

    def _read_value(self, line: Line, value: dict[str, Any]) -> None:
        sort = sort_of(value)
        memory, file = self.memory, self._file
        if sort == Sort.MARKER:
            note_marker(memory, file, value)
            return
        uuid = name_in(value, "uuid") or self._nameless(line)
        file.session = name_in(value, "sessionId") or file.session
        known = memory.nodes.get(uuid)
        if known is None:
            known = self._copied(value)
            if known is not None:
                file.fork = True
                memory.put_node(uuid, known)
        if known is not None:
            file.current = known.conversation
            return
        file.folder = file.folder or name_in(value, "cwd")
        file.time = time_in(value) or file.time
        if sort == Sort.PROGRESS:
            agents.note_progress(memory, value)
            above = memory.nodes.get(name_in(value, "parentUuid"))
            if above is not None and self._is_here(value, above):
                memory.put_node(uuid, above)  # two lines of three are such: they stand where their parent stands
                return
        self._place(line, value, sort, uuid)

    def _copied(self, value: dict[str, Any]) -> Node | None:
        """The place of the line that this line of a forked file copies, if that has been read."""
        origin = value.get("forkedFrom")
        return self.memory.nodes.get(name_in(origin, "messageUuid")) if isinstance(origin, dict) else None

    def _place(self, line: Line, value: dict[str, Any], sort: Sort, uuid: str) -> None:
        memory, file, draft = self.memory, self._file, self._draft
        above = name_in(value, "parentUuid") or (name_in(value, "logicalParentUuid") if sort == Sort.BOUNDARY else "")
        found = memory.nodes.get(above)
        here = found is not None and self._is_here(value, found)
        parent = found if found is not None and here else self._without_parent(value, sort, above)
        agent = file.agent or (name_in(value, "agentId") if value.get("isSidechain") is True else "")
        keys = replay_keys(sort, value, agent)
        if keys and all(key in memory.said for key in keys):
            memory.put_node(uuid, memory.nodes[memory.said[keys[-1]]])
            return
        spot = spot_of(memory, file, sort, value, parent)
        if file.fork and spot.fork is None and not has_home(memory, file):
            memory.put_node(uuid, parent)  # notices between what a fork copied and its first own line
            return
        target = self._open_branch(spot.fork, uuid) if spot.fork else spot.conversation
        if target != parent.conversation:
            parent = Node(target, memory.count(target), parent.anchor)
        if file.home < 0 and not memory.branches[target].shown and memory.branches[target].agent == file.agent:
            file.home = target
        draft.move(target)
        if sort == Sort.BOUNDARY:
            hold_boundary(draft, target, line, value, uuid)
            memory.put_node(uuid, Node(target, memory.count(target), uuid))
            return
        content = self._content(sort, value, target)
        if content is None:
            memory.put_node(uuid, Node(target, parent.ordinal, uuid if sort in _ANCHORS else parent.anchor))
        else:
            if above and found is None:
                content.data = content.data | {"orphan": above}
            self._write(line, value, sort, uuid, parent, spot, content)
        for key in keys:
            memory.put_said(key, uuid)
        if sort != Sort.PROGRESS:
            draft.state(target, state_after(memory.branches[target], sort, value, content))

    def _write(
        self, line: Line, value: dict[str, Any], sort: Sort, uuid: str, parent: Node, spot: Spot, content: Content
    ) -> None:
        """Add the line's entry, and remember where the line stands. A notice that is not at the end leads back to its parent."""
        memory, draft, target = self.memory, self._draft, parent.conversation
        if sort in REAL and sort != Sort.SUMMARY:
            flush_boundary(draft, target)
        entry = self._entry(line, value, sort, uuid, target, content, spot)
        if sort == Sort.SUMMARY:
            entry = with_boundary(draft, target, entry)
        at_end = parent.ordinal == memory.count(target)
        ordinal = draft.append(target, entry, sort)
        if sort in _ANCHORS:
            memory.put_node(uuid, Node(target, ordinal, uuid))
        else:
            memory.put_node(uuid, Node(target, ordinal if at_end else parent.ordinal, parent.anchor))
        self._remember(value, sort, content, parent, target, ordinal)
        if sort == Sort.SUMMARY:
            keep_on(draft, target, ordinal, uuid)

    def _content(self, sort: Sort, value: dict[str, Any], target: int) -> Content | None:
        if sort == Sort.PROGRESS:
            return None
        waiting = self.memory.branches[target].waits if sort == Sort.RESULT else {}
        unnamed = next((call for call in waiting if call.startswith("none-")), "")
        asked = self.memory.asked

        def call_of(call: str) -> Call | None:
            return asked[call][0] if call in asked else None

        return entry_content(sort, value, folder=self._file.folder, call_of=call_of, unnamed=unnamed)

    def _is_here(self, value: dict[str, Any], parent: Node) -> bool:
        """Whether the line belongs into its parent's conversation: an agent's file is a conversation of its own."""
        agent = self._file.agent or (name_in(value, "agentId") if value.get("isSidechain") is True else "")
        return not agent or self.memory.branches[parent.conversation].agent == agent

    def _without_parent(self, value: dict[str, Any], sort: Sort, above: str) -> Node:
        """The place above a line without a parent, or whose parent is not known here."""
        memory, file = self.memory, self._file
        if file.agent or value.get("isSidechain") is True:
            number = self._agent_home(value)
            return Node(number, memory.count(number), ROOT)
        goes_on = sort != Sort.PROMPT and file.current >= 0
        number = file.current if goes_on else self._session_home()
        if above:
            return Node(number, memory.count(number), MISSING + above)
        return Node(number, 0 if sort == Sort.PROMPT else memory.count(number), ROOT + memory.branches[number].key)

    def _session_home(self) -> int:
        file, memory = self._file, self.memory
        name = file.session or agents.stem_of(self._name)
        key = f"session:{name}"
        if key not in memory.by_key:
            memory.put_home(name, self._draft.new(Branch(key=key, kind=OpenedKind.SESSION, folder=file.folder)))
        return memory.by_key[key]

    def _agent_home(self, value: dict[str, Any]) -> int:
        """The conversation of an agent's file, or of a sidechain inside an old main file; made at its first line."""
        memory, file = self.memory, self._file
        agent = file.agent or name_in(value, "agentId") or name_in(value, "uuid")
        key = agents.agent_key(agent)
        if key in memory.by_key:
            return memory.by_key[key]
        names = (agents.stem_of(self._name), file.session)
        session = next((memory.session_homes[name] for name in names if name in memory.session_homes), -1)
        owner = agents.owner_of(memory, agent, value) or agents.likely_owner(memory, agent, session)
        if owner is None:  # its session's file is gone
            return self._draft.new(Branch(key=key, kind=OpenedKind.SESSION, folder=file.folder, agent=agent))
        if owner.call:
            agents.link(memory, agent, owner.call)
        place = (owner.conversation, owner.ordinal)
        branch = Branch(key=key, kind=OpenedKind.AGENT, owner=place, call=owner.call, folder=file.folder, agent=agent)
        return self._draft.new(branch)

    def _open_branch(self, fork: tuple[int, int], uuid: str) -> int:
        branch = Branch(key=f"branch:{uuid}", kind=OpenedKind.BRANCH, parent=fork, folder=self._file.folder)
        number = self._draft.new(branch)
        if not has_home(self.memory, self._file):
            self._file.home = number
        return number

    def _entry(
        self, line: Line, value: dict[str, Any], sort: Sort, uuid: str, target: int, content: Content, spot: Spot
    ) -> PlannedEntry:
        data = content.data | self._draft.changed_facts(value)
        if spot.retry:
            data["retry"] = True
        if sort == Sort.PROMPT and self._was_queued(value):
            data["queued"] = True
        for ordinal in spot.omits:
            self.memory.put_flag(target, ordinal, OMITTED)
        key = self.memory.branches[target].key
        return PlannedEntry(
            kind=content.kind,
            source=Source(line.offset, line.size),
            model=content.model,
            data=data,
            time=self._file.time,
            omits=tuple(Place(key, ordinal) for ordinal in spot.omits),
            message_id=content.message_id,
            prompt=content.prompt,
            usage=content.usage,
            uuid=uuid,
            ends_turn=ends_turn(value, content),
        )

    def _was_queued(self, value: dict[str, Any]) -> bool:
        said = digest(text_of_blocks(content_of(value)))
        if said not in self._file.queued:
            return False
        self._file.queued = [other for other in self._file.queued if other != said]
        return True

    def _remember(
        self, value: dict[str, Any], sort: Sort, content: Content, parent: Node, target: int, ordinal: int
    ) -> None:
        memory, branch = self.memory, self.memory.branches[target]
        if sort == Sort.PROMPT:
            memory.put_typed(parent.anchor, Typed(said_text(value), target, ordinal))
            line = flat(typed_text(content_of(value)), TITLE)
            if target == self._file.home:
                self._file.prompted = self._file.prompted or line
            elif branch.kind == OpenedKind.BRANCH and not branch.title:
                self._draft.title(target, line, TitleRank.PROMPT)
        clock = name_in(value, "timestamp")
        for call, tool, given in content.asked:
            memory.put_asked(call, Call(tool, time_in(value)), target, ordinal)
            agents.note_call(memory, call, tool, given, target, ordinal)
        for block in blocks_of(content_of(value)) if content.answered else ():
            agents.note_result(
                memory, value, name_in(block, "tool_use_id"), text_of_blocks(block.get("content")), clock
            )
        for call in content.answered:
            memory.put_answered(call, clock, target, ordinal)
        if sort == Sort.INJECTED:
            agents.note_notice(memory, text_of_blocks(content_of(value)), clock)
        if content.model_name and content.model_name != branch.model:
            branch.model = content.model_name
            self._draft.steps.append(Used(key=branch.key, model=content.model_name))

    def _append_fault(self, line: Line) -> None:
        name = self._nameless(line)
        if name in self.memory.nodes:
            return
        target = self._file.current
        entry = fault_entry("claude", line, self._file.time, name)
        self.memory.put_node(name, Node(target, self._draft.append(target, entry, Sort.QUIET), ROOT))

    def _nameless(self, line: Line) -> str:
        """The name of a line that has no uuid: by its bytes, so that a rewritten file does not bring it twice."""
        return f"{self._name}#{digest_of(line.raw or str(line.size).encode()).hex()}"

    def _close(self) -> None:
        """Tell titles and states once for all the lines read."""
        memory, file, draft = self.memory, self._file, self._draft
        if file.agent:
            name_agent(draft)
        else:
            name_file(draft)
            stem = agents.stem_of(self._name)
            if file.current >= 0 and stem not in memory.session_homes:
                memory.put_home(stem, file.home if file.home >= 0 else file.current)
        close_agents(draft)
        draft.close()

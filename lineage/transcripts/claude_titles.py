"""Markers of a Claude Code file: titles, queue, notices. They have no place in the chain. Pure."""

from typing import Any

from lineage.transcripts.claude_agents import COMPACTS, agent_key, note_notice
from lineage.transcripts.claude_draft import Draft
from lineage.transcripts.claude_lines import name_in
from lineage.transcripts.claude_memory import AgentMeta, FileState, Memory
from lineage.transcripts.claude_places import has_home
from lineage.transcripts.digests import digest
from lineage.transcripts.plan import TitleRank
from lineage.transcripts.tools import flat, text_of

TITLE = 80  # characters: a title stands on one line of a list
_QUEUE = 200  # queued prompts remembered of one file; real files queue a handful
_TITLES = {"custom-title": "customTitle", "agent-name": "agentName", "ai-title": "aiTitle", "last-prompt": "lastPrompt"}
# The vendor's own order: what a person gave, what a model made, the last prompt, a summary, the first prompt.
_ORDER = (
    ("custom-title", TitleRank.PERSON),
    ("agent-name", TitleRank.SUMMARY),
    ("ai-title", TitleRank.SUMMARY),
    ("last-prompt", TitleRank.PROMPT),
    ("summary", TitleRank.SUMMARY),
)


def note_marker(memory: Memory, file: FileState, line: dict[str, Any]) -> None:
    """Take in a line without a place. The last of its kind wins; an empty title clears it."""
    kind = name_in(line, "type")
    file.session = file.session or name_in(line, "sessionId")
    if kind in _TITLES:
        title = flat(text_of(line, _TITLES[kind]), TITLE)
        file.titles = {**file.titles, kind: title}
    elif kind == "summary":
        # Most summaries belong to other sessions; one counts only if its leaf is among the lines read here.
        leaf = memory.nodes.get(name_in(line, "leafUuid"))
        if leaf is not None and leaf.conversation in (file.home, file.current):
            file.titles = {**file.titles, kind: flat(text_of(line, "summary"), TITLE)}
    elif kind == "queue-operation" and line.get("operation") == "enqueue":
        text = line.get("content")
        if isinstance(text, str):
            file.queued = [*file.queued, digest(text)][-_QUEUE:]
            note_notice(memory, text, name_in(line, "timestamp"))


def name_file(draft: Draft) -> None:
    """The file names the conversation that it began; one that only goes on in another's names that by no prompt."""
    own = has_home(draft.memory, draft.file)
    number = draft.file.home if own else draft.file.current
    title, rank = best_title(draft.file)
    if number >= 0 and (own or rank > TitleRank.PROMPT):
        draft.title(number, title, rank)


def name_agent(draft: Draft) -> None:
    """An agent is named by its call: `Explore: find tests`."""
    number = draft.memory.by_key.get(agent_key(draft.file.agent), -1)
    if number < 0:
        return
    meta = draft.memory.metas.get(draft.file.agent, AgentMeta())
    title = flat(": ".join(part for part in (meta.type, meta.description or draft.file.prompted) if part), TITLE)
    draft.title(number, "Compaction" if draft.file.agent.startswith(COMPACTS) else title, TitleRank.SUMMARY)


def best_title(file: FileState) -> tuple[str, TitleRank]:
    """The title of what this file is of, and who gave it; an empty one when nothing was asked yet."""
    for kind, rank in _ORDER:
        if file.titles.get(kind):
            return file.titles[kind], rank
    return file.prompted, TitleRank.PROMPT

"""T2, T3: reading a file in pieces, in any pieces and also in another process each time, gives the plan of reading it whole."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from lineage.transcripts.claude import ClaudeReader
from lineage.transcripts.lines import LineSplitter
from lineage.transcripts.plan import Step
from tests.lineage.transcripts.reading import SAMPLES, folded, read_files, read_in_pieces

NAMES = (
    "syn-01-tree.jsonl",
    "syn-01-tree/subagents/agent-a1b2c3d.jsonl",
    "syn-01-tree/subagents/agent-e4f5a6b.jsonl",
    "syn-02-irregular.jsonl",
    "syn-03-resumed.jsonl",
    "syn-04-forked.jsonl",
)
BASE = SAMPLES / "claude"
DATA = {name: (BASE / name).read_bytes() for name in NAMES}
WHOLE = folded(read_files(ClaudeReader(), BASE, *NAMES))
cuts_of = st.lists(st.floats(0, 1), max_size=5)


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[cuts_of] * len(NAMES)), st.booleans())
def test_pieces_give_the_plan_of_the_whole(cuts: tuple[list[float], ...], forget: bool) -> None:
    assert folded(read_in_pieces("claude", BASE, NAMES, cuts, forget=forget)) == WHOLE


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(DATA[NAMES[0]])))
def test_a_plan_only_grows(cut: int) -> None:
    """R6: what a beginning of the file has made stays as it is."""
    data, name = DATA[NAMES[0]], NAMES[0]
    begun = folded(ClaudeReader().read(name, LineSplitter().feed(data[:cut])))
    whole = folded(ClaudeReader().read(name, LineSplitter().feed(data)))
    for key, conversation in begun.items():
        assert conversation.opened == whole[key].opened
        assert conversation.entries == whole[key].entries[: len(conversation.entries)]


def test_agents_that_run_beside_their_session_give_the_same_plan() -> None:
    """A live tail reads the files in turns, a few lines each."""
    reader = ClaudeReader()
    steps: list[Step] = []
    for name in NAMES[1:3]:
        reader.tell_meta(name, json.loads((BASE / name.replace(".jsonl", ".meta.json")).read_text()))
    waiting = {name: LineSplitter().feed(DATA[name]) for name in NAMES[:3]}
    while any(waiting.values()):
        for name, lines in waiting.items():
            if lines and reader.is_ready(name, lines):
                steps += reader.read(name, lines[:2])
                waiting[name] = lines[2:]
    steps += reader.settle()
    whole = folded(read_files(ClaudeReader(), BASE, *NAMES[:3]))
    turns = folded(steps)
    assert turns == whole

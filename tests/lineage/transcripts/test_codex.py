"""T1, T2 for Codex: rollouts read from the invented samples and from invented lines."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage.transcripts.codex import CodexReader
from lineage.transcripts.codex_lines import is_injected
from lineage.transcripts.lines import LineSplitter
from lineage.transcripts.plan import Appended, Linked, Opened
from tests.lineage.transcripts.reading import SAMPLES, Conversation, folded, read_files, read_in_pieces

BASE = SAMPLES / "codex"
NAMES = ("syn-01-parent.jsonl", "syn-02-subagent.jsonl", "syn-03-fork-paginated.jsonl")
PARENT = "thread:4be23514-2ffd-5d54-a1bf-0e662e7e742c"
AGENT = "thread:63b4c7ed-5675-5ac7-847b-8b69d13f9972"
FORK = "thread:9a2fe2a4-4421-5293-8872-54a558271e33"


def samples(*names: str) -> dict[str, Conversation]:
    return folded(read_files(CodexReader(), BASE, *(names or NAMES)))


class Rollout:
    """Invents the lines of one rollout."""

    def __init__(self, thread: str = "t1", **meta: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        self.line("session_meta", id=thread, cwd="/srv/shop", cli_version="0.146.0", **meta)

    def line(self, kind: str, **payload: Any) -> None:
        number = len(self.lines)
        clock = f"2026-09-01T11:{number // 60:02}:{number % 60:02}.000Z"
        self.lines.append({"timestamp": clock, "type": kind, "payload": payload})

    def item(self, kind: str, **payload: Any) -> None:
        self.line("response_item", type=kind, **payload)

    def event(self, kind: str, **payload: Any) -> None:
        self.line("event_msg", type=kind, **payload)

    def prompt(self, text: str) -> None:
        self.item("message", role="user", content=[{"type": "input_text", "text": text}])
        self.event("user_message", message=text)

    def answer(self, text: str, *, end: bool = True) -> None:
        self.item("message", role="assistant", content=[{"type": "output_text", "text": text}])
        self.event("agent_message", message=text)
        if end:
            self.event("task_complete")

    def data(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)


def read(*rollouts: Rollout) -> dict[str, Conversation]:
    reader, steps = CodexReader(), []
    for number, rollout in enumerate(rollouts):
        steps += reader.read(f"f{number}.jsonl", LineSplitter().feed(rollout.data()))
    return folded([*steps, *reader.settle()])


def test_items_are_entries_and_the_events_that_repeat_them_are_not() -> None:
    parent = samples(NAMES[0])[PARENT]
    items = [
        "codex.meta",
        "codex.meta",
        "user",
        *["assistant"] * 3,
        "tool_result",
        "tool_result",
        "assistant",
        "turn_end",
    ]
    assert parent.kinds[:10] == items
    assert parent.prompts == ["Rename the price helper.", "Ask a helper to check the docs."]
    assert parent.entries[0].model is None
    assert parent.entries[2].data == {}
    assert parent.entries[0].data["cwd"] == "/home/dev/shop"


def test_a_rollback_is_a_branch_before_the_turns_that_it_dropped() -> None:
    plan = samples(NAMES[0])
    (branch,) = [c for key, c in plan.items() if key != PARENT]
    assert (str(branch.opened.kind), branch.fork) == ("branch", (PARENT, 10))
    assert branch.prompts == ["Never mind. Compact and stop."]
    assert plan[PARENT].kinds[10:] == ["user", "assistant", "tool_result", "codex.interrupted", "codex.rolled_back"]
    assert (plan[PARENT].state, branch.state) == ("idle", "idle")


def test_a_compaction_reads_the_history_that_takes_its_place() -> None:
    branch = next(c for key, c in samples(NAMES[0]).items() if key != PARENT)
    head = branch.entries[1]
    assert (head.kind, head.head, head.data["window"]) == ("compaction", True, 2)
    assert head.model is not None
    assert [(m["role"], m["content"][0]["text"]) for m in head.model] == [
        ("user", "Rename the price helper."),
        ("assistant", "Summary: the helper was renamed."),
    ]


def test_a_subagent_is_owned_by_the_call_and_leaves_out_what_it_copied() -> None:
    agent = samples()[AGENT]
    assert (str(agent.opened.kind), agent.owner, agent.opened.call) == ("agent", (PARENT, 12), "call_s")
    assert agent.prompts == ["Check the docs."]
    assert (agent.title, agent.state) == ("explorer: Check the docs.", "idle")


def test_a_fork_by_number_goes_on_after_that_line() -> None:
    fork = samples()[FORK]
    assert (str(fork.opened.kind), fork.fork) == ("branch", (PARENT, 10))
    assert fork.kinds == ["user", "assistant"]


def test_a_fork_that_copies_goes_on_after_the_last_line_it_copied() -> None:
    first = Rollout()
    first.prompt("One.")
    first.answer("First.")
    fork = Rollout("t2", forked_from_id="t1")
    fork.lines += first.lines[:4]
    fork.prompt("Two.")
    plan = read(first, fork)
    assert [(str(c.opened.kind), c.fork, c.prompts) for c in plan.values()] == [
        ("session", None, ["One."]),
        ("branch", ("thread:t1", 2), ["Two."]),
    ]
    assert [str(c.opened.kind) for c in read(fork).values()] == ["session"]


def test_files_wait_for_the_thread_they_hang_on() -> None:
    reader = CodexReader()
    lines = {name: LineSplitter().feed((BASE / name).read_bytes()) for name in NAMES}
    assert [reader.is_ready(name, lines[name]) for name in NAMES] == [True, False, False]
    reader.read(NAMES[0], lines[NAMES[0]])
    assert [reader.is_ready(name, lines[name]) for name in NAMES] == [True, True, True]


def test_a_subagent_whose_call_is_read_later_is_linked_then() -> None:
    parent = Rollout()
    parent.prompt("Ask a helper.")
    agent = Rollout("t2", parent_thread_id="t1")
    agent.prompt("Look.")
    reader = CodexReader()
    steps = reader.read("a.jsonl", LineSplitter().feed(parent.data()))
    steps += reader.read("b.jsonl", LineSplitter().feed(agent.data()))
    assert folded(steps)["thread:t2"].owner == ("thread:t1", 0)
    begun = len(parent.data())
    parent.item("function_call", name="spawn_agent", arguments='{"message":"Look."}', call_id="c1")
    parent.item("function_call_output", call_id="c1", output='{"agent_id":"t2"}')
    splitter = LineSplitter(begun)
    steps += reader.read("a.jsonl", splitter.feed(parent.data()[begun:]))
    late = reader.settle()
    assert [type(step) for step in late] == [Linked]
    assert folded([*steps, *late])["thread:t2"].owner == ("thread:t1", 2)
    assert reader.settle() == []


def test_the_same_prompt_after_a_rollback_is_a_retry() -> None:
    rollout = Rollout()
    rollout.prompt("One.")
    rollout.answer("First.")
    rollout.prompt("Two.")
    rollout.event("turn_aborted", reason="interrupted")
    rollout.event("thread_rolled_back", num_turns=1)
    rollout.prompt("Two. And tests.")
    rollout.answer("Second.")
    (only,) = read(rollout).values()
    again = next(entry for entry in only.entries if entry.data.get("retry"))
    assert again.prompt == "Two. And tests."
    assert [place.ordinal for place in again.omits] == [4, 5, 6]
    rollout.event("thread_rolled_back", num_turns=2)
    rollout.prompt("Another thing.")
    session, branch = read(rollout).values()
    assert branch.fork == ("thread:t1", 0)
    assert session.prompts == ["One.", "Two.", "Two. And tests."]


def test_tokens_are_counted_once_however_often_they_are_told() -> None:
    rollout = Rollout()
    rollout.line("turn_context", model="gpt-5.6-sol", cwd="/srv/shop")
    rollout.prompt("One.")

    def count(total: int, cached: int, output: int, last: int) -> None:
        totals = {"input_tokens": total, "cached_input_tokens": cached, "output_tokens": output}
        rollout.event(
            "token_count",
            info={"total_token_usage": totals, "last_token_usage": {"input_tokens": last, "output_tokens": 5}},
        )

    rollout.event("token_count", info=None)
    count(1000, 0, 50, 100)
    count(1000, 0, 50, 100)
    rollout.answer("First.", end=False)
    count(1300, 200, 60, 300)
    rollout.event("task_complete")
    (only,) = read(rollout).values()
    used = [(e.usage.input_tokens, e.usage.cache_read_tokens, e.usage.output_tokens) for e in only.entries if e.usage]
    assert used == [(100, 0, 5), (100, 200, 10)]
    assert only.model == "gpt-5.6-sol"


def test_facts_of_events_come_with_the_result_of_their_call() -> None:
    rollout = Rollout()
    rollout.prompt("Change it.")
    patch = "*** Begin Patch\n*** Update File: /srv/shop/cart.py\n@@\n-a\n+b\n+c\n*** End Patch"
    rollout.item("custom_tool_call", name="apply_patch", input=patch, call_id="c1")
    diff = "@@ -1,2 +1,3 @@\n same\n-a\n+b\n+c\n"
    rollout.event(
        "patch_apply_end",
        call_id="c1",
        success=True,
        changes={"/srv/shop/cart.py": {"type": "update", "unified_diff": diff}},
    )
    rollout.item("custom_tool_call_output", call_id="c1", output="Done!")
    rollout.item("function_call", name="shell", arguments='{"command":["bash","-lc","pytest -q"]}', call_id="c2")
    rollout.event("exec_command_end", call_id="c2", exit_code=1, duration={"secs": 4, "nanos": 200_000_000})
    rollout.item("function_call_output", call_id="c2", output="1 failed")
    (only,) = read(rollout).values()
    call, result, command, failed = only.entries[1:]
    assert call.data["calls"] == [{"id": "c1", "line": "cart.py +2 −1"}]
    note = result.data["results"][0]
    assert (note["path"], note["line"], note["patch"][0]["lines"]) == ("cart.py", "+2 −1", [" same", "-a", "+b", "+c"])
    assert command.data["calls"][0]["line"] == "pytest -q"
    assert failed.data["results"][0] == {
        "id": "c2", "name": "shell", "seconds": 4.2, "exit": 1, "error": True, "line": "exit 1 · 4.2 s",
    }  # fmt: skip


def test_old_outputs_tell_exit_code_and_duration_inside() -> None:
    rollout = Rollout()
    rollout.item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="c1")
    output = json.dumps({"output": "a.py", "metadata": {"exit_code": 0, "duration_seconds": 0.1}})
    rollout.item("function_call_output", call_id="c1", output=output)
    (only,) = read(rollout).values()
    assert only.entries[1].data["results"][0]["line"] == "exit 0 · 0.1 s"
    assert only.entries[1].model is not None
    assert only.entries[1].model[0]["content"][0]["content"] == [{"type": "text", "text": "a.py"}]


def test_the_oldest_files_have_no_envelopes() -> None:
    lines: list[dict[str, Any]] = [
        {"id": "t1", "timestamp": "2025-06-01T10:00:00Z", "instructions": None, "git": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "One."}]},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "First."}]},
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    (only,) = folded(CodexReader().read("rollout-old.jsonl", LineSplitter().feed(data))).values()
    assert only.kinds == ["user", "assistant", "tool_result", "assistant"]


@pytest.mark.parametrize(
    ("event", "state"),
    [
        ({"kind": "task_complete"}, ("idle", "")),
        ({"kind": "task_complete", "error": {"message": "quota"}}, ("failed", "quota")),
        ({"kind": "turn_aborted", "reason": "interrupted"}, ("idle", "interrupted")),
        ({"kind": "error", "message": "no answer"}, ("failed", "no answer")),
        ({"kind": "agent_message", "message": "x"}, ("running", "")),
    ],
)
def test_states_by_the_marks_of_a_turn(event: dict[str, Any], state: tuple[str, str]) -> None:
    rollout = Rollout()
    rollout.prompt("One.")
    rollout.event(**event)
    (only,) = read(rollout).values()
    assert (only.state, only.why) == state


def test_questions_and_children_are_waited_for() -> None:
    rollout = Rollout()
    rollout.prompt("One.")
    rollout.item(
        "function_call", name="request_user_input", arguments='{"questions":[{"question":"Which?"}]}', call_id="c1"
    )
    (only,) = read(rollout).values()
    assert (only.state, only.why) == ("answer", "Which?")
    rollout.item("function_call_output", call_id="c1", output="This one.")
    rollout.item("function_call", name="wait", arguments='{"ids":["t2"]}', call_id="c2")
    (only,) = read(rollout).values()
    assert only.state == "child"
    rollout.item("function_call_output", call_id="c2", output="done")
    (only,) = read(rollout).values()
    assert only.state == "running"


@pytest.mark.parametrize(
    ("text", "injected"),
    [
        ("<environment_context>\n<cwd>/x</cwd>\n</environment_context>", True),
        ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>", True),
        ("<turn_aborted>\nx\n</turn_aborted>", True),
        ("<div> is not closed here", False),
        ("Rename <b>this</b>.", False),
    ],
)
def test_what_people_typed_is_told_from_what_codex_put_there(text: str, injected: bool) -> None:
    assert is_injected(text) is injected


def test_a_thread_that_was_archived_is_the_same_thread() -> None:
    rollout = Rollout()
    rollout.prompt("One.")
    reader = CodexReader()
    steps = reader.read("sessions/a.jsonl", LineSplitter().feed(rollout.data()))
    rollout.answer("First.")
    moved = reader.read("archived_sessions/a.jsonl", LineSplitter().feed(rollout.data()))
    (only,) = folded([*steps, *moved]).values()
    assert only.kinds == ["user", "assistant", "turn_end"]


def test_reading_again_adds_nothing() -> None:
    reader = CodexReader()
    read_files(reader, BASE, *NAMES)
    again = read_files(reader, BASE, *NAMES)
    assert [step for step in again if isinstance(step, Opened | Appended | Linked)] == []


cuts_of = st.lists(st.floats(0, 1), max_size=4)


@settings(max_examples=50, deadline=None)
@given(st.tuples(cuts_of, cuts_of, cuts_of), st.booleans())
def test_pieces_give_the_plan_of_the_whole(cuts: tuple[list[float], ...], forget: bool) -> None:
    pieces = read_in_pieces("codex", BASE, NAMES, cuts, forget=forget)
    assert folded(pieces) == samples()

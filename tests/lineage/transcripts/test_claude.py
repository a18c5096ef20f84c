"""T1, T2 on the invented samples: what a project folder of Claude Code becomes."""

from lineage.transcripts.blocks import images_of
from lineage.transcripts.claude import ClaudeReader
from lineage.transcripts.lines import LineSplitter
from lineage.transcripts.plan import Appended, Linked, Opened
from tests.lineage.transcripts.reading import SAMPLES, folded, read_claude, read_files

MAIN = "session:2e2cb7b6-10da-5411-8cd2-4aa7b569dbd9"
AMOUNT = "branch:c9cdfe83-277a-59e3-91f9-17e326634684"
BOTH = "branch:c6695b9e-0c5c-592a-b4e9-7d80d0a1e2be"
TREE = (
    "syn-01-tree.jsonl",
    "syn-01-tree/subagents/agent-a1b2c3d.jsonl",
    "syn-01-tree/subagents/agent-e4f5a6b.jsonl",
)


def test_a_rewind_of_three_ways_is_a_session_and_two_branches() -> None:
    plan = read_claude("syn-01-tree.jsonl")
    assert [(key, str(c.opened.kind), c.fork, c.prompts) for key, c in plan.items()] == [
        (MAIN, "session", None, ["Add a discount field to the cart.", "Percent."]),
        (AMOUNT, "branch", (MAIN, 8), ["Amount in cents, please."]),
        (BOTH, "branch", (MAIN, 8), ["Both, with a switch.", "also add tests", "Go on with the tests."]),
    ]
    assert plan[MAIN].entries[7].uuid == "b4d84985-7efb-52e0-9790-05d8f1721e4f"


def test_the_lines_of_one_answer_share_its_message_id_and_its_usage() -> None:
    """L5, A6: four lines, one message, the largest counts."""
    entries = read_claude("syn-01-tree.jsonl")[MAIN].entries
    lines = [entry for entry in entries if entry.message_id == "msg_m1"]
    assert [[block["type"] for block in (entry.model or [])[0]["content"]] for entry in lines] == [
        ["thinking"],
        ["text"],
        ["tool_use"],
        ["tool_use"],
    ]
    assert [entry.usage.output_tokens for entry in lines if entry.usage] == [5, 5, 5, 90]
    used = lines[0].usage
    assert used is not None
    assert (used.input_tokens, used.cache_read_tokens, used.cache_write_tokens) == (3, 4000, 120)


def test_parallel_tools_and_progress_fork_nothing() -> None:
    kinds = read_claude("syn-01-tree.jsonl")[MAIN].kinds
    assert kinds == ["user", *["assistant"] * 4, "tool_result", "tool_result", "assistant", "user", "assistant"]


def test_a_compaction_is_one_head_entry() -> None:
    plan = read_claude("syn-01-tree.jsonl")
    ((key, entry),) = [(key, entry) for key, c in plan.items() for entry in c.entries if entry.head]
    assert (key, entry.kind) == (BOTH, "compaction")
    assert entry.data == {"trigger": "manual", "before": 142431, "after": 9000}
    assert entry.model is not None
    assert "Summary: a cart discount" in entry.model[0]["content"]
    assert plan[BOTH].kinds.count("compaction") == 1


def test_errors_interruptions_and_queued_prompts_are_seen() -> None:
    both = read_claude("syn-01-tree.jsonl")[BOTH]
    by_kind = {entry.kind: entry for entry in both.entries}
    assert by_kind["claude.error"].data["text"] == "The model did not answer: 529 overloaded_error, try 1 of 10"
    assert by_kind["claude.error"].model is None
    assert by_kind["claude.interrupted"].data["text"] == "[Request interrupted by user for tool use]"
    assert [entry.data.get("queued") for entry in both.entries if entry.prompt] == [None, True, None]
    assert by_kind["turn_end"].ends_turn
    assert by_kind["turn_end"].data["line"] == "1.2 s"


def test_images_stay_in_the_messages_and_out_of_data() -> None:
    entry = read_claude("syn-01-tree.jsonl")[AMOUNT].entries[2]
    assert entry.model is not None
    ((media_type, data),) = images_of(entry.model)
    assert media_type == "image/png"
    assert data.startswith(b"\x89PNG")
    assert entry.data["images"] == [{"n": 0, "media_type": "image/png", "bytes": len(data)}]
    assert "iVBOR" not in str(entry.data)


def test_titles_states_folder_and_model() -> None:
    plan = read_claude("syn-01-tree.jsonl")
    assert [c.title for c in plan.values()] == ["Discount work", "Amount in cents, please.", "Both, with a switch."]
    assert {c.state for c in plan.values()} == {"idle"}
    assert {c.opened.folder for c in plan.values()} == {"/home/dev/shop"}
    assert {c.model for c in plan.values()} == {"claude-sonnet-4-6"}


def test_subagents_are_owned_by_the_entry_that_called_them_nested_too() -> None:
    plan = read_claude(*TREE)
    first, second = plan["agent:a1b2c3d"], plan["agent:e4f5a6b"]
    assert (str(first.opened.kind), first.owner, first.opened.call) == ("agent", (BOTH, 5), "toolu_4")
    assert (str(second.opened.kind), second.owner, second.opened.call) == ("agent", ("agent:a1b2c3d", 4), "toolu_k2")
    assert [first.title, second.title] == ["Explore: find tests", "general-purpose: Count the tests."]
    assert (first.state, second.state) == ("idle", "idle")
    assert first.kinds == ["user", "assistant", "tool_result", "assistant", "tool_result", "assistant"]


def test_a_subagent_waits_for_the_call_that_made_it() -> None:
    reader, name = ClaudeReader(), TREE[2]
    lines = LineSplitter().feed((SAMPLES / "claude" / name).read_bytes())
    assert not reader.is_ready(name, lines)
    read_files(reader, SAMPLES / "claude", *TREE[:2])
    reader.tell_meta(name, {"toolUseId": "toolu_k2"})
    assert reader.is_ready(name, lines)


def test_a_resumed_file_adds_only_what_is_new() -> None:
    """T2: the prefix has the same uuids. What follows forks where the first session went another way."""
    plan = read_claude("syn-01-tree.jsonl", "syn-03-resumed.jsonl")
    alone = read_claude("syn-01-tree.jsonl")
    assert {key: plan[key].entries for key in alone} == {key: c.entries for key, c in alone.items()}
    (new,) = [c for key, c in plan.items() if key not in alone]
    assert new.prompts == ["Resumed in a new file: amount, as a percent of the total."]
    assert new.kinds == ["user", "assistant"]
    assert new.fork == (MAIN, 8)
    assert new.title == new.prompts[0]
    assert plan[MAIN].title == "Discount work"


def test_a_forked_file_is_a_branch_of_what_it_copies() -> None:
    plan = read_claude("syn-01-tree.jsonl", "syn-04-forked.jsonl")
    fork = plan["branch:88c13f6b-3687-5a4f-9a32-74325c2e23e6"]
    assert (fork.fork, fork.title, fork.kinds) == ((MAIN, 8), "Discount work (fork)", ["user", "assistant"])


def test_a_fork_whose_origin_is_not_here_is_a_session() -> None:
    ((key, only),) = read_claude("syn-04-forked.jsonl").items()
    assert key == "session:7fffec64-4c00-528c-b6f2-22c11c03cba4"
    assert only.prompts == ["Add a discount field to the cart.", "Forked: try without a database column."]


def test_irregular_lines_are_kept_and_stop_nothing() -> None:
    (only,) = read_claude("syn-02-irregular.jsonl").values()
    texts = [entry.data.get("text", "") for entry in only.entries]
    assert only.prompts[0] == "Line separator \u2028 and paragraph \u2029 and NEL \u0085 stay inside one JSON line."
    assert only.kinds.count("claude.unreadable") == 5
    assert "A line of 38 bytes at byte 411 of the file is not JSON." in texts
    assert "A line of 8 bytes at byte 449 of the file is not a JSON object." in texts
    assert [entry.data["type"] for entry in only.entries if entry.kind == "claude.unknown"] == ["future-thing"]
    assert sum(entry.uuid == "9a465e84-5fda-514f-a293-4524c608033a" for entry in only.entries) == 1
    orphans = [entry.prompt for entry in only.entries if "orphan" in entry.data]
    assert orphans == ["My parent was never written.", "I am my own parent.", "Cycle one."]
    big = next(entry for entry in only.entries if "toolu_b" in str(entry.data.get("results")))
    assert len((big.model or [])[0]["content"][0]["content"]) == 200_000
    odd = next(entry for entry in only.entries if entry.data.get("unknown") == ["future_block"])
    assert odd.model == [{"role": "assistant", "content": [{"type": "text", "text": "A block type nobody knows."}]}]
    assert "API Error: 500" in texts
    assert only.prompts[-1] == "\ud83d"
    clocks = {
        entry.time for entry in only.entries if entry.data.get("text") == "API Error: 500" or "clock" in entry.prompt
    }
    assert len(clocks) == 1


def test_reading_again_adds_nothing() -> None:
    """T2: import is idempotent, by uuid and by the bytes of what has none."""
    reader = ClaudeReader()
    names = (*TREE, "syn-02-irregular.jsonl", "syn-03-resumed.jsonl", "syn-04-forked.jsonl")
    first = read_files(reader, SAMPLES / "claude", *names)
    again = read_files(reader, SAMPLES / "claude", *names)
    assert len(folded(first)) == 8
    assert [step for step in again if isinstance(step, Opened | Appended | Linked)] == []

"""T2: real branches only. Each case is one that real files hold, told with invented lines."""

from typing import Any

from lineage.transcripts.claude import ClaudeReader
from lineage.transcripts.lines import LineSplitter
from tests.lineage.transcripts.reading import Conversation, Script, folded, read_scripts


def only(plan: dict[str, Conversation]) -> Conversation:
    ((_, conversation),) = plan.items()
    return conversation


def first_turn(script: Script) -> str:
    script.prompt("Add a discount field.")
    return script.answer("Percent or amount?")


def test_two_prompts_under_one_answer_are_a_branch() -> None:
    script = Script()
    answer = first_turn(script)
    script.prompt("Percent.")
    script.answer("Done.")
    script.prompt("Amount.", parent=answer)
    plan = read_scripts(s1=script)
    assert [(c.fork, c.prompts) for c in plan.values()] == [
        (None, ["Add a discount field.", "Percent."]),
        (("session:s1", 2), ["Amount."]),
    ]


def test_notices_between_answer_and_prompt_hide_no_branch() -> None:
    """The prompt hangs under a hook's line, not under the answer itself."""
    script = Script()
    answer = first_turn(script)
    script.prompt("Percent.")
    script.answer("Done.")
    script.line("progress", parent=answer, data={"type": "hook_progress"})
    script.line("attachment", attachment={"type": "file", "filename": "cart.py"})
    script.prompt("Amount.")
    plan = read_scripts(s1=script)
    assert [c.prompts for c in plan.values()] == [["Add a discount field.", "Percent."], ["Amount."]]


def test_a_rewind_to_the_first_prompt_forks_before_it() -> None:
    script = Script()
    script.system("session_start", content="Welcome", parent=None)
    first_turn(script)
    script.prompt("Write a poem instead.", parent=None)
    plan = read_scripts(s1=script)
    assert [(c.fork, c.prompts) for c in plan.values()] == [
        (None, ["Add a discount field."]),
        (("session:s1", 1), ["Write a poem instead."]),
    ]


def test_a_branch_takes_the_results_of_parallel_calls_along() -> None:
    script = Script()
    script.prompt("Read both.")
    one = script.call("t1", message="m1")
    two = script.call("t2", message="m1")
    first = script.result("t1", parent=one)
    script.result("t2", parent=two)
    script.answer("Read.")
    script.prompt("Go on.")
    script.prompt("Resumed from the middle.", parent=first)
    plan = read_scripts(s1=script)
    assert [(c.fork, c.prompts) for c in plan.values()] == [
        (None, ["Read both.", "Go on."]),
        (("session:s1", 5), ["Resumed from the middle."]),
    ]


def test_a_prompt_placed_between_parallel_results_is_no_branch() -> None:
    script = Script()
    script.prompt("Read both.")
    one = script.call("t1", message="m1")
    two = script.call("t2", message="m1")
    first = script.result("t1", parent=one)
    script.result("t2", parent=two)
    script.prompt("And be quick.", parent=first)
    assert only(read_scripts(s1=script)).prompts == ["Read both.", "And be quick."]


def test_the_same_prompt_again_is_a_retry_and_the_failed_attempt_is_not_read() -> None:
    script = Script()
    answer = first_turn(script)
    script.prompt("Percent.")
    script.system("api_error", error={"status": 529}, retryAttempt=10, maxRetries=10)
    script.prompt("Percent.", parent=answer)
    script.answer("Done.")
    session = only(read_scripts(s1=script))
    assert session.kinds == ["user", "assistant", "user", "claude.error", "user", "assistant"]
    again = session.entries[4]
    assert again.data["retry"] is True
    assert [place.ordinal for place in again.omits] == [3]


def test_a_mended_prompt_after_an_interruption_is_a_retry() -> None:
    script = Script()
    answer = first_turn(script)
    script.prompt("Percent, and add tests")
    script.call("t1")
    script.interrupt()
    script.prompt("Percent, and add tests. Use pytest.", parent=answer)
    session = only(read_scripts(s1=script))
    assert session.entries[-1].data["retry"] is True
    assert [place.ordinal for place in session.entries[-1].omits] == [3, 4, 5]


def test_another_idea_after_an_interruption_is_a_branch() -> None:
    script = Script()
    answer = first_turn(script)
    script.prompt("Percent, and add tests")
    script.interrupt()
    script.prompt("Drop the discount altogether.", parent=answer)
    assert len(read_scripts(s1=script)) == 2


def test_a_mended_prompt_after_a_whole_answer_is_a_branch() -> None:
    script = Script()
    answer = first_turn(script)
    script.prompt("Percent, and add tests")
    script.answer("Done.")
    script.prompt("Percent, and add tests. Use pytest.", parent=answer)
    assert len(read_scripts(s1=script)) == 2


def test_the_same_prompt_after_the_session_has_gone_on_is_a_branch() -> None:
    script = Script()
    answer = first_turn(script)
    script.prompt("Percent.")
    script.answer("Done.")
    script.prompt("Now the tests.")
    script.answer("Tested.")
    script.prompt("Percent.", parent=answer)
    assert len(read_scripts(s1=script)) == 2


def test_a_replay_with_new_uuids_is_known_again() -> None:
    """Written at a restart: the same clocks, the answer split into more lines."""
    script = Script()
    asked = script.prompt("Check both.")
    block = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "git status"}}
    other = {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "git log"}}
    script.answer(block, other, message="m1", stop="tool_use", at=5)
    script.result("t1", at=6)
    script.result("t2", at=6)
    script.interrupt()
    moment = script.lines[-1]["timestamp"]
    script.answer(block, message="m1", stop="tool_use", at=5, parent=asked)
    script.answer(other, message="m1", stop="tool_use", at=5)
    script.result("t1", at=6)
    script.result("t2", at=6)
    script.interrupt()
    script.lines[-1]["timestamp"] = moment
    script.prompt("Keep going.")
    session = only(read_scripts(s1=script))
    assert session.kinds == ["user", "assistant", "tool_result", "tool_result", "claude.interrupted", "user"]


def test_a_resumed_file_goes_on_at_the_end_of_the_session() -> None:
    script = Script()
    first_turn(script)
    resumed = Script("s2", start=100)
    resumed.lines = [{**line, "sessionId": "s2"} for line in script.lines]
    resumed.prompt("Percent.", parent=script.lines[-1]["uuid"])
    resumed.marker("last-prompt", lastPrompt="Percent.")
    plan = read_scripts(s1=script, s2=resumed)
    assert only(plan).prompts == ["Add a discount field.", "Percent."]
    assert only(plan).title == "Add a discount field."


def test_a_fork_of_a_session_at_its_end_is_a_branch_of_its_own() -> None:
    script = Script()
    first_turn(script)
    fork = Script("s2", start=100)
    for line in script.lines:
        copy = fork.line(
            line["type"], message=line["message"], at=1, forkedFrom={"sessionId": "s1", "messageUuid": line["uuid"]}
        )
        assert copy != line["uuid"]
    fork.prompt("Percent.")
    fork.answer("Done.")
    plan = read_scripts(s1=script, s2=fork)
    assert [(c.fork, c.kinds) for c in plan.values()] == [
        (None, ["user", "assistant"]),
        (("session:s1", 2), ["user", "assistant"]),
    ]


def compacted(script: Script, **facts: Any) -> str:
    script.system(
        "compact_boundary",
        parent=None,
        logicalParentUuid=script.lines[-1]["uuid"],
        compactMetadata={"trigger": "auto", **facts},
    )
    return script.line("user", message={"role": "user", "content": "Summary so far."}, isCompactSummary=True)


def test_what_a_compaction_keeps_is_read_after_its_summary() -> None:
    script = Script()
    first = script.prompt("One.")
    script.answer("First.")
    kept = script.prompt("Two.")
    answer = script.answer("Second.")
    script.prompt("Three.")
    compacted(script, preservedMessages={"anchorUuid": first, "uuids": [kept, answer]})
    script.prompt("Four.", parent=answer)
    session = only(read_scripts(s1=script))
    head = session.entries[5]
    assert (head.kind, head.head, head.data["trigger"]) == ("compaction", True, "auto")
    assert head.keeps is not None
    assert head.keeps.ordinal == 3
    assert [place.ordinal for place in head.omits] == [5]
    assert session.prompts == ["One.", "Two.", "Three.", "Four."]


def test_a_kept_segment_is_all_between_its_ends() -> None:
    script = Script()
    head = script.prompt("One.")
    script.answer("First.")
    tail = script.prompt("Two.")
    script.interrupt()
    compacted(script, preservedSegment={"headUuid": head, "anchorUuid": "x", "tailUuid": tail})
    session = only(read_scripts(s1=script))
    assert session.entries[-1].keeps is not None
    assert session.entries[-1].keeps.ordinal == 1
    assert [place.ordinal for place in session.entries[-1].omits] == [4]


def test_a_boundary_without_a_summary_is_an_entry_all_the_same() -> None:
    script = Script()
    first_turn(script)
    script.system(
        "compact_boundary",
        parent=None,
        logicalParentUuid=script.lines[-1]["uuid"],
        compactMetadata={"trigger": "manual"},
    )
    assert only(read_scripts(s1=script)).kinds == ["user", "assistant"]
    script.prompt("Go on.")
    session = only(read_scripts(s1=script))
    assert session.kinds == ["user", "assistant", "compaction", "user"]
    assert (session.entries[2].head, session.entries[2].model) == (True, None)


def test_an_answer_that_takes_the_place_of_another() -> None:
    script = Script()
    script.prompt("One.")
    refused = script.answer("I cannot.")
    script.answer("Here it is.", parent=script.lines[0]["uuid"], supersedesUuids=[refused])
    session = only(read_scripts(s1=script))
    assert session.kinds == ["user", "assistant", "assistant"]
    assert [place.ordinal for place in session.entries[2].omits] == [2]


def test_a_session_of_commands_alone_is_none() -> None:
    script = Script()
    script.line("user", message={"role": "user", "content": "<command-name>/exit</command-name>"}, parent=None)
    script.line("user", message={"role": "user", "content": "<local-command-stdout>Bye!</local-command-stdout>"})
    assert read_scripts(s1=script) == {}
    script.prompt("Stay.")
    session = only(read_scripts(s1=script))
    assert session.kinds == ["claude.command", "claude.output", "user"]
    assert [entry.data.get("command") or entry.data.get("text") for entry in session.entries[:2]] == ["/exit", "Bye!"]


def test_an_unreadable_first_line_makes_no_session() -> None:
    reader = ClaudeReader()
    assert reader.read("x.jsonl", LineSplitter().feed(b"not a transcript\n{}\n[1]\n")) == []


def test_sidechains_inside_an_old_main_file_are_agents() -> None:
    script = Script()
    script.prompt("Find them.")
    script.call("t1", "Task", prompt="Look in tests.", description="find tests", subagent_type="Explore")
    called = script.lines[-1]["uuid"]
    script.prompt("Look in tests.", parent=None, isSidechain=True)
    side = script.answer("Two files.", isSidechain=True)
    script.result("t1", "Two files.", parent=called)
    script.answer("There are two.")
    plan = read_scripts(s1=script)
    assert [(str(c.opened.kind), c.owner, c.kinds) for c in plan.values()] == [
        ("session", None, ["user", "assistant", "tool_result", "assistant"]),
        ("agent", ("session:s1", 2), ["user", "assistant"]),
    ]
    assert side in {entry.uuid for entry in plan[next(key for key in plan if key.startswith("agent:"))].entries}


def agent_file(*texts: str) -> bytes:
    script = Script("s1", start=500)
    script.prompt(texts[0], parent=None, isSidechain=True, agentId="a1")
    for text in texts[1:]:
        script.answer(text, isSidechain=True, agentId="a1", stop=None)
    return script.data()


def test_an_agent_is_linked_by_progress_by_prompt_or_by_likelihood() -> None:
    for told in ("progress", "prompt", "nothing"):
        script = Script()
        script.prompt("Find them.")
        given = {"prompt": "Look in tests."} if told == "prompt" else {}
        script.call("t1", "Task", description="find tests", **given)
        if told == "progress":
            script.line("progress", parentToolUseID="t1", data={"type": "agent_progress", "agentId": "a1"})
        reader = ClaudeReader()
        steps = reader.read("s1.jsonl", LineSplitter().feed(script.data()))
        lines = LineSplitter().feed(agent_file("Look in tests.", "Two."))
        name = "s1/subagents/agent-a1.jsonl"
        assert reader.is_ready(name, lines) is (told != "nothing")
        agent = folded([*steps, *reader.read(name, lines)])["agent:a1"]
        assert (agent.owner, agent.opened.call) == (("session:s1", 2), "t1"), told


def test_an_agent_that_began_before_its_call_was_known_is_linked_later() -> None:
    script = Script()
    script.prompt("Find them.")
    reader = ClaudeReader()
    steps = reader.read("s1.jsonl", LineSplitter().feed(script.data()))
    name = "s1/subagents/agent-a1.jsonl"
    steps += reader.read(name, LineSplitter().feed(agent_file("Look in tests.", "Two.")))
    assert folded(steps)["agent:a1"].owner == ("session:s1", 0)
    more = Script(start=50)
    more.call("t1", "Task", description="find tests", parent=script.lines[-1]["uuid"])
    more.result("t1", "Two.", toolUseResult={"agentId": "a1", "status": "completed"})
    steps += reader.read("s1.jsonl", LineSplitter().feed(more.data()))
    steps += reader.settle()
    agent = folded(steps)["agent:a1"]
    assert agent.owner == ("session:s1", 2)
    assert reader.settle() == []


def test_an_agent_whose_session_is_gone_is_a_session() -> None:
    reader = ClaudeReader()
    plan = folded(reader.read("s9/subagents/agent-a1.jsonl", LineSplitter().feed(agent_file("Look.", "Two."))))
    assert [str(c.opened.kind) for c in plan.values()] == ["session"]


def test_sessions_and_agents_that_start_together_with_the_same_words_are_two() -> None:
    first, second = Script("s1"), Script("s2")
    for script in (first, second):
        script.prompt("Check it.", at=5)
        script.line(
            "user", message={"role": "user", "content": "Look."}, parent=None, isSidechain=True, agentId="a1", at=6
        )
        script.line(
            "user", message={"role": "user", "content": "Look."}, parent=None, isSidechain=True, agentId="a2", at=6
        )
    plan = read_scripts(s1=first)
    assert list(plan) == ["session:s1", "agent:a1", "agent:a2"]
    assert list(read_scripts(s1=first, s2=second))[3:] == ["session:s2"]

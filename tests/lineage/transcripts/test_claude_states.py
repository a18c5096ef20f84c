"""L8: what a conversation does, by the format's own marks. Silence is none."""

from typing import Any

import pytest

from lineage.transcripts.claude import ClaudeReader
from lineage.transcripts.lines import LineSplitter
from tests.lineage.transcripts.reading import Script, folded, read_scripts


def state_of(script: Script) -> tuple[str, str]:
    (session,) = read_scripts(s1=script).values()
    return session.state, session.why


def asked() -> Script:
    script = Script()
    script.prompt("Add a field.")
    return script


def test_a_prompt_runs_until_the_turn_ends() -> None:
    script = asked()
    assert state_of(script) == ("running", "")
    script.call("t1", command="ls")
    assert state_of(script) == ("running", "")
    script.result("t1")
    assert state_of(script) == ("running", "")
    script.answer("Done.", stop=None)
    assert state_of(script) == ("running", "")
    script.system("turn_duration", durationMs=1200)
    assert state_of(script) == ("idle", "")


@pytest.mark.parametrize("stop", ["end_turn", "stop_sequence", "max_tokens", "refusal"])
def test_a_stop_reason_ends_the_turn(stop: str) -> None:
    script = asked()
    script.answer("Done.", stop=stop)
    assert state_of(script) == ("idle", "")
    (session,) = read_scripts(s1=script).values()
    assert session.entries[-1].ends_turn


def test_a_stop_hook_that_lets_it_go_on_ends_nothing() -> None:
    script = asked()
    script.answer("Done.", stop=None)
    script.system("stop_hook_summary", preventedContinuation=True, hookErrors=["tests fail"])
    assert state_of(script) == ("running", "")
    script.system("stop_hook_summary", preventedContinuation=False, hookErrors=[])
    assert state_of(script) == ("idle", "")


def test_a_question_waits_for_an_answer() -> None:
    script = asked()
    script.call("t1", "AskUserQuestion", questions=[{"question": "Percent or amount?"}])
    assert state_of(script) == ("answer", "Percent or amount?")
    script.result("t1", toolUseResult={"answers": {"Percent or amount?": "Percent"}})
    assert state_of(script) == ("running", "")


def test_a_call_of_a_subagent_waits_for_a_child() -> None:
    script = asked()
    script.call("t1", "Agent", description="find tests", message="m1")
    assert state_of(script) == ("child", "")
    script.call("t2", "Bash", command="ls", message="m1")
    assert state_of(script) == ("running", "")


def test_interrupted_and_failed() -> None:
    script = asked()
    script.interrupt()
    assert state_of(script) == ("idle", "interrupted")
    script.prompt("Again.")
    script.system("api_error", error={"status": 529}, retryAttempt=1, maxRetries=2)
    assert state_of(script) == ("running", "the model did not answer; trying again")
    script.system("api_error", error={"status": 529}, retryAttempt=2, maxRetries=2)
    assert state_of(script) == ("failed", "the model did not answer")
    script.prompt("Once more.")
    script.answer("API Error: 500", isApiErrorMessage=True)
    assert state_of(script) == ("failed", "API Error: 500")


def test_a_conversation_that_its_file_left_is_not_running() -> None:
    script = asked()
    answer = script.answer("Percent or amount?")
    script.prompt("Percent.")
    script.call("t1")
    script.prompt("Amount.", parent=answer)
    first, second = read_scripts(s1=script).values()
    assert (first.state, second.state) == ("idle", "running")


def agent(*results: dict[str, Any]) -> str:
    """The state of a subagent whose lines end without a mark, after these results of its call."""
    script = Script()
    script.prompt("Find them.")
    script.call("t1", "Agent", prompt="Look.")
    reader = ClaudeReader()
    steps = reader.read("s1.jsonl", LineSplitter().feed(script.data()))
    side = Script("s1", start=30)
    side.prompt("Look.", parent=None, isSidechain=True, agentId="a1")
    side.answer("Two.", stop=None, isSidechain=True, agentId="a1")
    steps += reader.read("s1/subagents/agent-a1.jsonl", LineSplitter().feed(side.data()))
    more = Script(start=100)
    for told in results:
        more.result("t1", parent=script.lines[-1]["uuid"], toolUseResult=told)
    steps += reader.read("s1.jsonl", LineSplitter().feed(more.data()))
    return folded(steps)["agent:a1"].state


def test_a_subagent_has_ended_once_its_caller_has_the_result() -> None:
    assert agent() == "running"
    assert agent({"agentId": "a1", "status": "completed"}) == "idle"
    assert agent({"agentId": "a1", "status": "async_launched", "isAsync": True}) == "running"
    task = {"task_id": "a1", "status": "completed"}
    assert agent({"agentId": "a1", "status": "async_launched", "isAsync": True}, {"task": task}) == "idle"

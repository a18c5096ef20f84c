"""Talking to a model (A5), against a real local server."""

import threading
import time
from typing import Any

import pytest
from pytest_django import Settings

from lineage.agent.messages import encode
from lineage.agent.prices import cost_micros
from lineage.agent.provider import Answer, ProviderFailed, Stopped, model_for, read_answer
from tests.lineage.agent.fakemodel import FakeModel, Fault

BODY = encode(
    {
        "model": "fake-large",
        "max_tokens": 100,
        "stream": True,
        "system": [{"type": "text", "text": "Work."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi ✓"}]}],
    }
)


def _never() -> bool:
    return False


def _read(body: bytes = BODY) -> Answer:
    answer = Answer()
    read_answer(body, into=answer, stopped=_never)
    return answer


def _read_until_failure() -> tuple[Answer, ProviderFailed]:
    answer = Answer()
    with pytest.raises(ProviderFailed) as failure:
        read_answer(BODY, into=answer, stopped=_never)
    return answer, failure.value


def test_the_bytes_that_were_assembled_are_sent(model: FakeModel) -> None:
    model.says("Hello there, friend")
    answer = _read()
    assert model.bodies == [BODY]
    assert answer.blocks == [{"type": "text", "text": "Hello there, friend"}]
    assert (answer.stop, answer.model) == ("end_turn", "fake-large")
    assert answer.message_id.startswith("msg_")
    assert answer.output_tokens > 1


def test_the_answer_grows(model: FakeModel) -> None:
    model.says("one two three")
    answer = Answer()
    seen: list[str] = []
    read_answer(BODY, into=answer, stopped=_never, seen=lambda: seen.append(answer.text))
    assert [text for text in dict.fromkeys(seen) if text] == ["one", "one two", "one two three"]


def test_a_tool_call_arrives_in_pieces(model: FakeModel) -> None:
    arguments = {"path": "a.txt", "old_string": "é" * 50, "new_string": "x"}
    call = {"name": "edit_file", "arguments": arguments}
    model.rules({"respond": {"content": "I will edit.", "tool_calls": [call, {"name": "list_dir", "arguments": {}}]}})
    answer = _read()
    assert answer.stop == "tool_use"
    assert [(block["name"], block["input"]) for block in answer.calls] == [("edit_file", arguments), ("list_dir", {})]
    assert len({block["id"] for block in answer.calls}) == 2


def test_a_cut_off_tool_call_is_taken_out(model: FakeModel) -> None:
    model.rules({"respond": {"content": "Look.", "tool_calls": [{"name": "x", "arguments": {"path": "abc"}}]}})
    model.faults.append(Fault(replace=(('c\\"}', "c"), ('"tool_use", "stop', '"max_tokens", "stop'))))
    answer = _read()
    assert answer.stop == "max_tokens"
    assert answer.calls == []
    assert answer.text == "Look."


@pytest.mark.parametrize(("status", "again"), [(429, True), (529, True), (500, True), (400, False), (401, False)])
def test_statuses_say_whether_to_try_again(model: FakeModel, status: int, again: bool) -> None:
    model.faults.append(Fault(status=status, headers=(("retry-after", "7"),)))
    answer, failure = _read_until_failure()
    assert not answer.holds_anything
    assert failure.again is again
    assert failure.after == 7.0
    assert str(failure) == f"The provider answered {status}: made {status}"


def test_a_broken_stream_keeps_what_came(model: FakeModel) -> None:
    model.says("one two three four")
    model.faults.append(Fault(break_after=4))
    answer, failure = _read_until_failure()
    assert answer.text == "one two"
    assert failure.again
    assert "broke off" in str(failure)


def test_an_error_event_in_the_stream_is_a_failure(model: FakeModel) -> None:
    model.says("one two three four")
    model.faults.append(Fault(error_after=3))
    answer, failure = _read_until_failure()
    assert answer.text == "one"
    assert failure.again
    assert "Overloaded" in str(failure)


def test_a_refusal_is_the_reason_to_stop(model: FakeModel) -> None:
    model.says("I cannot")
    model.faults.append(Fault(replace=(('"end_turn"', '"refusal"'),)))
    assert _read().stop == "refusal"


def test_nobody_at_the_address_is_said(settings: Settings) -> None:
    settings.ANTHROPIC_BASE_URL = "http://127.0.0.1:9"
    _, failure = _read_until_failure()
    assert failure.again
    assert str(failure) == "The provider cannot be reached."


def test_a_stop_is_heard_while_the_server_is_silent(model: FakeModel) -> None:
    model.says("one two three")
    model.faults.append(Fault(hold_after=4))
    answer = Answer()
    with pytest.raises(Stopped):  # the server says nothing more: who waited for it would wait for ever
        read_answer(BODY, into=answer, stopped=lambda: model.held.is_set() and answer.text == "one two")
    assert answer.text == "one two"
    end = time.monotonic() + 60
    while any(thread.name == "model stream" for thread in threading.enumerate()):
        assert time.monotonic() < end, "the reading thread goes on"


def _counted(**counts: Any) -> Answer:
    return Answer(model="claude-sonnet-9", **counts)


def test_a_price_is_held_against_each_kind_of_token() -> None:
    prices = {"other-*": {"input": 1.0}, "claude-sonnet-*": {"input": 3.0, "output": 15.0, "cache_read": 0.3}}
    answer = _counted(input_tokens=1_000, output_tokens=200, cache_read_tokens=10_000, cache_write_tokens=500)
    assert cost_micros(answer, prices) == 3_000 + 3_000 + 3_000
    assert cost_micros(answer, {"other-*": {"input": 1.0}}) is None


def test_which_model_answers(settings: Settings) -> None:
    settings.MODELS = []
    assert model_for("claude-old") is None
    settings.MODELS = ["big", "small"]
    assert model_for("small") == "small"
    assert model_for("claude-old") == model_for("") == "big"

"""The body of a request (A1): exact, ordered, trimmed with what it left out said. Properties over made conversations."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage.agent import images, request
from lineage.agent.messages import RESULT_CHARACTERS, Message, as_blocks, encode
from lineage.agent.prompt import AGENTS_CHARACTERS, Agents, agents_section, system_prompt
from lineage.agent.request import Assembled, Attached, Inputs, RequestTooLong, Tail, assemble

UNCAPPED = 1 << 40
TOOLS = ({"name": "read_file", "description": "Reads.", "input_schema": {"type": "object"}},)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=400).map(lambda t: f"w{t}")


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Messages as the context gives them: each answer directly followed by the results of its calls."""
    found: list[Message] = []
    seq = draw(st.integers(1, 50))
    for number in range(draw(st.integers(1, 8))):
        found.append(_user(draw(WORDS), seq))
        seq += 1
        for turn in range(draw(st.integers(0, 3))):
            calls = [f"c{number}-{turn}-{call}" for call in range(draw(st.integers(0, 3)))]
            blocks: list[dict[str, Any]] = [{"type": "text", "text": draw(WORDS)}]
            blocks += [{"type": "tool_use", "id": call, "name": "read_file", "input": {}} for call in calls]
            found.append(Message(role="assistant", content=blocks, seq=seq))
            seq += 1
            if calls:
                results = [{"type": "tool_result", "tool_use_id": call, "content": draw(WORDS)} for call in calls]
                found.append(Message(role="user", content=results, seq=seq))
                seq += len(calls)
    return found if found[-1].role == "user" else [*found, _user(draw(WORDS), seq)]


def _user(text: str, seq: int) -> Message:
    return Message(role="user", content=as_blocks(text), seq=seq)


def _inputs(**changed: Any) -> Inputs:
    return Inputs(conversation=12, model="m", system="Work.", tools=TOOLS, **changed)


def _whole(messages: Sequence[Message], head: Sequence[Message] = ()) -> Tail:
    return Tail(head=head, messages=messages, start=messages[0].seq, first=messages[0].seq)


def _assembled(inputs: Inputs, messages: Sequence[Message], cap: int) -> Assembled | RequestTooLong:
    try:
        return assemble(inputs, [_whole(messages)], cap=cap)
    except RequestTooLong as refusal:
        return refusal


def _paged(messages: Sequence[Message], size: int) -> Iterator[Tail]:
    for count in range(size, len(messages) + size, size):
        part = messages[-count:]
        yield Tail(messages=part, start=messages[0].seq, first=part[0].seq)


def _read(assembled: Assembled) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(assembled.body)["messages"]
    return found


def _texts(messages: Sequence[dict[str, Any]]) -> str:
    return "\n".join(block.get("text", "") for message in messages for block in message["content"])


@given(messages=conversations(), cap=st.integers(600, 9_000))
def test_a_capped_body_is_within_the_cap_and_well_formed(messages: list[Message], cap: int) -> None:
    assembled = _assembled(_inputs(), messages, cap)
    if isinstance(assembled, RequestTooLong):
        assert assembled.ledger.counted > cap
        return
    assert len(assembled.body) <= cap
    sent = _read(assembled)
    assert [message["role"] for message in sent] == ["user", "assistant"] * (len(sent) // 2) + ["user"] * (
        len(sent) % 2
    )
    for message, following in zip(sent, [*sent[1:], None], strict=True):
        calls = {block["id"] for block in message["content"] if block["type"] == "tool_use"}
        answers = {b["tool_use_id"] for b in (following or {}).get("content", ()) if b["type"] == "tool_result"}
        assert calls == answers  # never a call without its result, nor a result without its call
    newest = next(m for m in reversed(messages) if m.role == "user" and m.says_more)
    assert newest.content[0]["text"] in _texts(sent)
    last = sent[-1]["content"][-1]
    assert {**last, "cache_control": None} == {**messages[-1].content[-1], "cache_control": None}


@given(messages=conversations(), slack=st.integers(0, 3_000))
def test_under_the_cap_nothing_is_added_or_taken(messages: list[Message], slack: int) -> None:
    whole = assemble(_inputs(), [_whole(messages)], cap=UNCAPPED)
    again = assemble(_inputs(), [_whole(messages)], cap=len(whole.body) + slack)
    assert again.body == whole.body
    assert whole.ledger.left_out is None
    assert "earlier entries" not in _texts(_read(whole))


@given(messages=conversations(), cap=st.integers(600, 9_000), page=st.integers(1, 7))
def test_reading_in_pages_gives_the_same_body(messages: list[Message], cap: int, page: int) -> None:
    bodies = []
    for tails in ([_whole(messages)], list(_paged(messages, page))):
        try:
            bodies.append(assemble(_inputs(), tails, cap=cap).body)
        except RequestTooLong:
            bodies.append(b"")
    assert bodies[0] == bodies[1]


@given(messages=conversations(), cap=st.integers(600, 9_000))
def test_what_is_left_out_is_said_and_counted(messages: list[Message], cap: int) -> None:
    assembled = _assembled(_inputs(), messages, cap)
    if isinstance(assembled, RequestTooLong):
        return
    ledger = assembled.ledger
    said = f"({ledger.entries_left_out} earlier entries of this conversation, #12/{messages[0].seq} to #12/"
    assert (ledger.left_out is not None) == (said in _texts(_read(assembled)))
    if ledger.left_out is not None:
        kept = {message.seq for message in messages if message.content[0].get("text", "∅") in _texts(_read(assembled))}
        assert ledger.left_out[1] < max(kept)


@given(messages=conversations(), cap=st.integers(600, 9_000), lineage=st.sampled_from(["", "From #3."]))
def test_the_ledger_adds_up(messages: list[Message], cap: int, lineage: str) -> None:
    agents = agents_section(b"Be kind.")
    inputs = _inputs(lineage=lineage, agents=agents, memories={"a-b": "- a-b (fact): it is so"})
    assembled = _assembled(inputs, messages, cap)
    ledger = assembled.ledger
    if isinstance(assembled, Assembled):
        assert ledger.total == len(assembled.body)
    parts = ("frame", "system", "lineage", "agents", "memory", "tools", "attachments", "images", "messages")
    assert sum(getattr(ledger, part) for part in parts) == ledger.total
    assert ledger.frame > 0


def test_the_order_of_the_body_is_fixed() -> None:
    inputs = _inputs(lineage="L", agents=Agents(text="A"), thinking={"type": "adaptive"})
    body = assemble(inputs, [_whole([_user("hi", 1)])]).body
    read = json.loads(body)
    assert list(read) == ["model", "max_tokens", "stream", "thinking", "system", "tools", "messages"]
    assert [block["text"] for block in read["system"]] == ["Work.", "L", "A"]
    assert read["max_tokens"] == 16_384
    assert body == encode(read)  # compact, and exactly what is counted


def test_the_head_stays_when_older_messages_go() -> None:
    head = [_user("- slow-disk (fact): writes wait", 3)]
    messages = [_user(f"{number}" * 500, number) for number in range(4, 40)]
    inputs = _inputs(memories={"slow-disk": "- slow-disk (fact): writes wait", "gone": "- gone (fact): not sent"})
    assembled = assemble(inputs, [_whole(messages, head)], cap=4_000)
    assert _texts(_read(assembled)).startswith("- slow-disk (fact): writes wait")
    assert assembled.receipt.memories == ("slow-disk",)
    assert assembled.ledger.memory == len("- slow-disk (fact): writes wait")
    assert assembled.ledger.left_out is not None
    assert assembled.ledger.left_out[0] == 4


def test_a_long_run_keeps_its_input_and_its_newest_rounds() -> None:
    messages = [_user("Mend the build", 1)]
    for turn in range(20):
        call = {"type": "tool_use", "id": f"c{turn}", "name": "read_file", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": "x" * 400}
        messages.append(Message(role="assistant", content=[call], seq=2 + 2 * turn))
        messages.append(Message(role="user", content=[result], seq=3 + 2 * turn))
    assembled = assemble(_inputs(), [_whole(messages)], cap=3_000)
    sent = _read(assembled)
    assert "apart from #12/1, which follows" in sent[0]["content"][0]["text"]
    assert sent[0]["content"][1]["text"] == "Mend the build"
    assert sent[1]["content"][0]["type"] == "tool_use"
    assert sent[-1]["content"][0]["tool_use_id"] == "c19"


def test_words_after_results_are_kept_without_the_results_of_calls_left_out() -> None:
    call = {"type": "tool_use", "id": "c", "name": "read_file", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "x" * 5_000}
    messages = [
        _user("First", 1),
        Message(role="assistant", content=[call], seq=2),
        Message(role="user", content=[result, {"type": "text", "text": "Steer left"}], seq=3),
    ]
    assembled = assemble(_inputs(), [_whole(messages)], cap=2_000)
    sent = _read(assembled)
    assert len(sent) == 1
    assert sent[0]["content"][-1]["text"] == "Steer left"
    assert b"tool_result" not in assembled.body


def test_what_yields_does_so_in_order() -> None:
    agents = agents_section(b"a" * 2_000)
    attached = [
        Attached(name=f"f{n}", seq=2, text=f"text of f{n}: " + "t" * 1_000, line=f"line of f{n}", carried=1_000)
        for n in range(2)
    ]
    messages = [_user("old" * 300, 1), _user("new", 2)]
    inputs = _inputs(agents=agents, attached=attached)
    states = []
    for cap in range(6_500, 500, -100):
        assembled = _assembled(inputs, messages, cap)
        if isinstance(assembled, RequestTooLong):
            states.append("too long")
            assert assembled.ledger.agents < 300
            continue
        ledger = assembled.ledger
        states.append(
            f"{ledger.attachments_carried} attached, {ledger.entries_left_out} out, "
            f"agents {assembled.receipt.agents_characters}"
        )
        for number, one in enumerate(attached):
            assert (one.text in _texts(_read(assembled))) == (number < ledger.attachments_carried)
            assert (one.name in assembled.receipt.attachments) == (number < ledger.attachments_carried)
            assert (one.line in _texts(_read(assembled))) == (number >= ledger.attachments_carried)
    assert list(dict.fromkeys(states)) == [
        "2 attached, 0 out, agents 2000",
        "1 attached, 0 out, agents 2000",
        "0 attached, 0 out, agents 2000",
        "0 attached, 1 out, agents 2000",
        "0 attached, 0 out, agents 0",
        "0 attached, 1 out, agents 0",
        "too long",
    ]


def test_agents_is_trimmed_then_counted_and_its_cut_is_said() -> None:
    exact = agents_section(b"  " + b"y" * AGENTS_CHARACTERS + b"\n\n")
    assert exact.characters == exact.total == AGENTS_CHARACTERS
    assert exact.why == ""
    long = agents_section("é".encode() * (AGENTS_CHARACTERS + 1))
    assert long.characters == AGENTS_CHARACTERS
    assert long.text.endswith(f"({long.why})")
    assert f"{AGENTS_CHARACTERS + 1} characters" in long.why
    assert "é" * AGENTS_CHARACTERS + "\n\n(" in long.text
    assert agents_section(b" \n ") == agents_section(None) == Agents()
    undecodable = agents_section(b"\xff\xfe\x00")
    assert undecodable.text == ""
    assert "not UTF-8" in undecodable.why
    assembled = assemble(_inputs(agents=undecodable), [_whole([_user("hi", 1)])])
    assert assembled.ledger.notes == (undecodable.why,)


def test_a_tool_result_is_bounded_with_a_sentence() -> None:
    kept = as_blocks([{"type": "tool_result", "tool_use_id": "c", "content": "r" * RESULT_CHARACTERS}])
    assert kept[0]["content"] == "r" * RESULT_CHARACTERS
    for content in ("r" * (RESULT_CHARACTERS + 5), [{"type": "text", "text": "r" * (RESULT_CHARACTERS + 5)}]):
        (block,) = as_blocks([{"type": "tool_result", "tool_use_id": "c", "content": content}])
        text = block["content"] if isinstance(content, str) else "".join(part["text"] for part in block["content"])
        assert text.startswith("r" * RESULT_CHARACTERS)
        assert text.count("r" * RESULT_CHARACTERS) == 1
        assert "the last 5 were left out" in text


def test_images_have_a_budget_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "IMAGES", 2)
    monkeypatch.setattr(images, "IMAGE_BYTES", 900)

    def image(size: int) -> dict[str, Any]:
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * size}}

    messages = [Message(role="user", content=[{"type": "text", "text": "see"}, image(400)], seq=n) for n in (1, 2, 3)]
    assembled = assemble(_inputs(), [_whole(messages)], cap=2_000)
    sent = _texts(_read(assembled))
    assert "(image image/png of #12/1, 400 bytes, was left out" in sent
    assert "#12/2, 400" not in sent
    assert assembled.ledger.images == 800
    assert assembled.ledger.images_kept == 2
    assert assembled.ledger.counted == len(assembled.body) - 800
    one_more_byte = [*messages[:2], Message(role="user", content=[image(501)], seq=3)]
    assert assemble(_inputs(), [_whole(one_more_byte)]).ledger.images_kept == 1


def test_images_do_not_count_into_the_cap() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 50_000}}
    messages = [Message(role="user", content=[picture], seq=1)]
    assembled = assemble(_inputs(), [_whole(messages)], cap=1_000)
    assert len(assembled.body) > 50_000
    assert assembled.ledger.counted <= 1_000


def test_nothing_unsendable_is_sent() -> None:
    blocks = [
        {"type": "text", "text": " \n"},
        {"type": "thinking", "thinking": "hm"},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "half \ud83d of a pair"},
    ]
    assert as_blocks(blocks) == blocks[2:]
    assert "half � of a pair".encode() in encode(blocks[3])


def test_a_conversation_that_begins_with_an_answer_begins_with_a_user_message() -> None:
    messages = [Message(role="assistant", content=as_blocks("Hello"), seq=1), _user("Hi", 2)]
    sent = _read(assemble(_inputs(), [_whole(messages)]))
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    "fact",
    [
        "Your working folder is /src/shop.",
        "Look before you answer",
        "list_dir shows the shape of a folder",
        "read_file shows the part of a file that matters",
        "search finds where something is",
        "at most 2000 lines at once",
        "start_line and end_line",
        "continue with the lines that the answer names as not shown",
        "ignore_case",
        "*.py",
        "Paths are relative to it",
        "outside is out of reach",
        "sees each edit and each command before it happens and can decline it",
        "do not reach for the same end by another way",
        "ask what is wanted instead",
        "short, plain answers",
    ],
)
def test_the_system_prompt_states_the_fact(fact: str) -> None:
    assert fact in system_prompt(folder="/src/shop", name="wren")


def test_without_a_folder_no_folder_tool_is_named() -> None:
    prompt = system_prompt(folder="", name="wren")
    assert "read_file" not in prompt
    assert "no files to read" in prompt


def test_the_cap_is_256_kibibytes() -> None:
    messages = [_user("x" * 1_000, seq) for seq in range(1, 400)]
    assembled = assemble(_inputs(), [_whole(messages)])
    assert request.REQUEST_CAP == 262_144
    assert 260_000 < len(assembled.body) <= 262_144

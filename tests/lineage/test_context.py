"""L4, L5: what the model reads, derived without a database."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from console.json_text import dumped
from lineage.context import INTERRUPTED, OPENING, Context, Line, answer_text, derive_context, parse_messages


def user(content: Any) -> str:
    return dumped([{"role": "user", "content": content}])


def assistant(*blocks: Any) -> str:
    return dumped([{"role": "assistant", "content": list(blocks)}])


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "search", "input": {}}


def result(name: str, said: str = "found") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": said}


def derive(*models: str, head: Line | None = None, edits: dict[int, str | None] | None = None) -> Context:
    return derive_context(head=head, lines=[Line(seq, model) for seq, model in enumerate(models, 1)], edits=edits or {})


def test_a_plain_exchange_is_read_as_it_was_said() -> None:
    said = derive(user("Where is the tax?"), "", assistant(text("In totals.py."))).messages
    assert said == [
        {"role": "user", "content": "Where is the tax?"},
        {"role": "assistant", "content": [text("In totals.py.")]},
    ]


def test_adjacent_user_messages_join() -> None:
    """L5."""
    assert derive(user("One."), user([text("Two.")])).messages == [
        {"role": "user", "content": [text("One."), text("Two.")]}
    ]


def test_lines_of_one_answer_join_across_results_between_them() -> None:
    """L5: tools that run side by side write their results between the lines of the answer that called them."""
    lines = [
        Line(1, user("Look.")),
        Line(2, assistant(text("Both.")), "m1"),
        Line(3, assistant(call("a")), "m1"),
        Line(4, user([result("a")])),
        Line(5, assistant(call("b")), "m1"),
        Line(6, user([result("b")])),
        Line(7, assistant(text("Done.")), "m2"),
    ]
    assert derive_context(head=None, lines=lines, edits={}).messages == [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [text("Both."), call("a"), call("b")]},
        {"role": "user", "content": [result("a"), result("b")]},
        {"role": "assistant", "content": [text("Done.")]},
    ]


def test_results_follow_their_call_in_call_order_and_the_rest_is_said_after_them() -> None:
    said = derive(
        user("Go."),
        assistant(call("a"), call("b")),
        user("By the way."),
        user([result("b", "2"), text("and this")]),
        user([result("a", "1")]),
    ).messages
    assert said[2:] == [
        {"role": "user", "content": [result("a", "1"), result("b", "2"), text("By the way."), text("and this")]}
    ]


def test_a_call_without_a_result_was_interrupted_and_a_result_without_a_call_is_dropped() -> None:
    said = derive(user("Go."), assistant(call("a")), user([result("z")]), user("Hm?")).messages
    assert said[2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": INTERRUPTED, "is_error": True},
            text("Hm?"),
        ],
    }


def test_call_ids_repeat_and_a_result_belongs_to_the_newest_call() -> None:
    said = derive(
        user("Go."),
        assistant(call("a")),
        user([result("a", "1")]),
        assistant(call("a")),
        user([result("a", "2")]),
    ).messages
    assert [m["content"] for m in said if m["role"] == "user"][1:] == [[result("a", "1")], [result("a", "2")]]


def test_aborted_and_failed_answers_are_left_out() -> None:
    lines = [Line(1, user("Go.")), Line(2, assistant(text("Half an ans")), "", True), Line(3, user("Again."))]
    assert derive_context(head=None, lines=lines, edits={}).messages == [
        {"role": "user", "content": [text("Go."), text("Again.")]}
    ]


def test_the_newest_edit_of_a_line_replaces_or_omits_it() -> None:
    said = derive(user("One."), user("Two."), edits={1: user("Uno."), 2: None}).messages
    assert said == [{"role": "user", "content": "Uno."}]


def test_a_line_without_messages_can_be_given_some() -> None:
    assert derive("", edits={1: user("Said later.")}).messages == [{"role": "user", "content": "Said later."}]


def test_the_head_entry_comes_first_and_counts_once() -> None:
    """L4: a compaction at 4 keeps 3 and what follows."""
    lines = [Line(3, user("Kept.")), Line(4, user("Summary.")), Line(5, assistant(text("On.")))]
    context = derive_context(head=lines[1], lines=lines, edits={})
    assert context.head == [{"role": "user", "content": "Summary."}]
    assert context.rest == [{"role": "user", "content": "Kept."}, {"role": "assistant", "content": [text("On.")]}]
    assert context.messages[0] == {"role": "user", "content": [text("Summary."), text("Kept.")]}


def test_a_leading_answer_gets_a_user_message_before_it() -> None:
    said = derive(assistant(text("Yes."))).messages
    assert said[0] == {"role": "user", "content": OPENING}


def test_unpaired_surrogates_are_read_as_stored() -> None:
    """R10."""
    assert parse_messages('[{"role":"user","content":"\\ud800"}]') == [{"role": "user", "content": "\ud800"}]


def test_the_text_of_an_answer() -> None:
    said: list[dict[str, Any]] = [
        {"role": "assistant", "content": [text(" One."), call("a"), text("Two. ")]},
        {"role": "user", "content": "x"},
    ]
    assert answer_text(said) == "One.\nTwo."


ids = st.sampled_from("abc")
blocks = st.one_of(st.sampled_from([text("t"), text(" ")]), ids.map(call), ids.map(result))
contents = st.one_of(st.sampled_from(["said", " "]), st.lists(blocks, max_size=4))
messages = st.builds(lambda r, c: [{"role": r, "content": c}], st.sampled_from(["user", "assistant"]), contents)
lines = st.lists(
    st.tuples(messages.map(dumped) | st.just(""), st.sampled_from(["", "m1", "m2"]), st.booleans()), max_size=12
)


@given(lines, st.dictionaries(st.integers(1, 12), messages.map(dumped) | st.none(), max_size=3))
def test_whatever_was_recorded_the_messages_are_what_the_api_wants(
    found: list[tuple[str, str, bool]], edits: dict[int, str | None]
) -> None:
    """L5: roles alternate from a user message on; each call has exactly one result, directly after it, in call order."""
    context = derive_context(
        head=None, lines=[Line(seq, *line) for seq, line in enumerate(found, 1)], edits=edits
    ).messages
    assert [m["role"] for m in context] == [("user", "assistant")[n % 2] for n in range(len(context))]
    for number, message in enumerate(context):
        content = message["content"]
        assert content
        if not isinstance(content, list):
            continue
        results = [b["tool_use_id"] for b in content if b["type"] == "tool_result"]
        if message["role"] == "user":
            before = context[number - 1]["content"] if number else []
            asked = [b["id"] for b in before if b["type"] == "tool_use"] if isinstance(before, list) else []
            assert results == list(dict.fromkeys(asked))
        else:
            assert number + 1 < len(context) or not any(b["type"] == "tool_use" for b in content)

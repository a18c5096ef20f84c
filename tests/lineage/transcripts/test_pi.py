"""T1, T2 for pi: a true tree, read from the invented sample and from invented lines."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage.transcripts.lines import LineSplitter
from lineage.transcripts.pi import PiReader
from lineage.transcripts.pi_entries import patch_of
from lineage.transcripts.plan import Appended, Opened
from tests.lineage.transcripts.reading import SAMPLES, Conversation, folded, read_files, read_in_pieces

BASE = SAMPLES / "pi"
TREE = "syn-01-tree.jsonl"
MAIN = "session:6b0085a3-df69-59ab-bf0d-aab193a78496"
SIDE = "branch:6b0085a3-df69-59ab-bf0d-aab193a78496/0000000b"
SECOND = "branch:6b0085a3-df69-59ab-bf0d-aab193a78496/00000018"
HEADER = {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-09-01T12:00:00.000Z", "cwd": "/srv"}


def tree() -> dict[str, Conversation]:
    return folded(read_files(PiReader(), BASE, TREE))


def read(*files: Sequence[dict[str, Any]]) -> dict[str, Conversation]:
    """Invented files f0.jsonl, f1.jsonl, …"""
    reader, steps = PiReader(), []
    for number, lines in enumerate(files):
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        steps += reader.read(f"f{number}.jsonl", LineSplitter().feed(data))
    return folded(steps)


def message(number: int, parent: int | None, role: str, text: str, **extra: Any) -> dict[str, Any]:
    clock = f"2026-09-01T12:00:{number:02}.000Z"
    told = {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1788264000000 + number, **extra}
    above = None if parent is None else f"{parent:08}"
    return {"type": "message", "id": f"{number:08}", "parentId": above, "timestamp": clock, "message": told}


def test_every_node_with_two_children_of_content_is_a_branch() -> None:
    plan = tree()
    assert [(key, str(c.opened.kind), c.fork, c.prompts) for key, c in plan.items()] == [
        (MAIN, "session", None, ["Plan the checkout page.", "Way A."]),
        (SIDE, "branch", (MAIN, 5), ["Way B.", "Write the tests."]),
        (SECOND, "branch", (MAIN, 0), ["A second root in the same file.", "My parent is missing."]),
    ]


def test_labels_names_and_changes_of_the_model_are_no_children() -> None:
    plan = tree()
    assert plan[MAIN].title == "Checkout page"
    assert plan[SIDE].title == "Way B."
    assert {c.model for c in plan.values()} == {"claude-sonnet-4-6", ""}
    assert plan[MAIN].kinds == ["system", "user", "assistant", "tool_result", "assistant", "user", "assistant"]


def test_a_compaction_keeps_what_it_names() -> None:
    side = tree()[SIDE]
    (head,) = [entry for entry in side.entries if entry.head]
    assert (head.kind, head.data["before"]) == ("compaction", 50000)
    assert head.keeps is not None
    assert side.entries[head.keeps.ordinal - 1].uuid == "0000000e"


def test_edits_of_the_context_reach_into_what_is_inherited() -> None:
    side = tree()[SIDE]
    edit = next(entry for entry in side.entries if entry.kind == "pi.context_edit")
    assert [(place.conversation, place.ordinal) for place in edit.omits] == [(MAIN, 4)]
    replaced = read(
        [
            HEADER,
            message(1, None, "user", "One."),
            {
                "type": "context_edit",
                "id": "00000002",
                "parentId": "00000001",
                "targetId": "00000001",
                "replacement": {"role": "user", "content": "Two."},
            },
        ]
    )
    ((place, messages),) = replaced["session:s1"].entries[1].replaces
    assert (place.ordinal, messages) == (1, [{"role": "user", "content": [{"type": "text", "text": "Two."}]}])


def test_failed_and_aborted_answers_are_not_read_again() -> None:
    """L4."""
    side = tree()[SIDE]
    failed = next(entry for entry in side.entries if entry.outcome)
    assert (failed.outcome, failed.data) == ("failed", {"failed": True, "text": "overloaded"})
    plan = read(
        [
            HEADER,
            message(1, None, "user", "Go."),
            message(2, 1, "assistant", "I be", stopReason="aborted", errorMessage="Request was aborted"),
        ]
    )
    session = plan["session:s1"]
    assert (session.entries[1].outcome, session.state, session.why) == ("aborted", "idle", "interrupted")


@pytest.mark.parametrize(
    ("stop", "state"), [("toolUse", "running"), ("stop", "idle"), ("length", "idle"), ("error", "failed")]
)
def test_states_by_the_stop_reason(stop: str, state: str) -> None:
    plan = read([HEADER, message(1, None, "user", "Go."), message(2, 1, "assistant", "Yes.", stopReason=stop)])
    assert plan["session:s1"].state == state


def test_tokens_and_dollars_are_kept_once_for_each_answer() -> None:
    usage = {"input": 10, "output": 5, "cacheRead": 7, "cacheWrite": 3, "cost": {"total": 0.0125}}
    plan = read([HEADER, message(1, None, "assistant", "Yes.", usage=usage, model="m1")])
    used = plan["session:s1"].entries[0].usage
    assert used is not None
    assert (used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens) == (10, 5, 7, 3)
    assert (used.cost_micros, used.model, used.message_id) == (12500, "m1", "00000001")


def test_thinking_keeps_only_a_signature_that_can_be_checked_again() -> None:
    for api, kept in (("anthropic-messages", "SIG"), ("openai-responses", "")):
        told = message(1, None, "assistant", "", api=api)
        told["message"]["content"] = [{"type": "thinking", "thinking": "Hm.", "thinkingSignature": "SIG"}]
        (entry,) = read([HEADER, told])["session:s1"].entries
        assert entry.model == [
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": kept}]}
        ]


def test_calls_results_and_diffs() -> None:
    call = message(1, None, "assistant", "")
    call["message"]["content"] = [
        {
            "type": "toolCall",
            "id": "call|1",
            "name": "edit",
            "arguments": {"path": "/srv/a.py", "oldText": "a", "newText": "b\nc"},
        }
    ]
    diff = "   1 same\n-  2 a\n+  2 b\n+  3 c\n     ...\n+ 90 end"
    result = message(
        2, 1, "toolResult", "Replaced.", toolCallId="call|1", toolName="edit", isError=False, details={"diff": diff}
    )
    first, second = read([HEADER, call, result])["session:s1"].entries
    assert first.data["calls"] == [{"id": "call_1", "line": "a.py +2 −1"}]
    note = second.data["results"][0]
    assert (note["added"], note["removed"], note["line"]) == (3, 1, "+3 −1 · 1.0 s")
    assert (
        note["patch"]
        == patch_of(diff)
        == [
            {"oldStart": 1, "newStart": 1, "lines": [" same", "-a", "+b", "+c"], "oldLines": 2, "newLines": 3},
            {"oldStart": 90, "newStart": 90, "lines": ["+end"], "oldLines": 0, "newLines": 1},
        ]
    )


def test_a_command_of_the_person_is_said_to_the_model() -> None:
    entry = next(entry for entry in tree()[SIDE].entries if entry.kind == "pi.command")
    assert entry.data == {"command": "! ls", "text": "a.py", "exit": 0}
    assert entry.model == [{"role": "user", "content": "Ran `ls`:\n\na.py"}]


def test_lines_that_cannot_be_read_branch_nothing() -> None:
    second = tree()[SECOND]
    assert second.kinds == ["user", "pi.unknown", "pi.unreadable", "user"]
    assert second.entries[3].data["orphan"] == "missing0"
    data = b"".join(
        json.dumps(line).encode() + b"\n"
        for line in (HEADER, message(1, None, "user", "One."), message(2, 1, "assistant", "Two."))
    )
    lines = LineSplitter().feed(
        data.replace(b'{"type": "message", "id": "00000002"', b'noise\n{"type": "message", "id": "00000002"')
    )
    (session,) = folded(PiReader().read("x.jsonl", lines)).values()
    assert session.kinds == ["user", "pi.unreadable", "assistant"]


def test_the_first_version_is_linear_and_known_again_after_it_was_rewritten() -> None:
    old: list[dict[str, Any]] = [{**HEADER}]
    del old[0]["version"]
    new: list[dict[str, Any]] = [HEADER]
    for number, (role, text) in enumerate([("user", "One."), ("assistant", "First."), ("user", "Two.")], 1):
        line = message(number, number - 1 or None, role, text)
        new.append(line)
        old.append({key: value for key, value in line.items() if key not in ("id", "parentId")})
    reader = PiReader()
    steps = reader.read("f.jsonl", LineSplitter().feed(b"".join(json.dumps(one).encode() + b"\n" for one in old)))
    (session,) = folded(steps).values()
    assert session.kinds == ["user", "assistant", "user"]
    new.append(message(4, 3, "assistant", "Second."))
    again = reader.read("f.jsonl", LineSplitter().feed(b"".join(json.dumps(one).encode() + b"\n" for one in new)))
    (session,) = folded([*steps, *again]).values()
    assert session.kinds == ["user", "assistant", "user", "assistant"]


def test_a_fork_in_a_file_of_its_own_is_a_branch() -> None:
    first = [HEADER, message(1, None, "user", "One."), message(2, 1, "assistant", "First.", stopReason="stop")]
    header = {**HEADER, "id": "s2", "parentSession": "/home/dev/.pi/agent/sessions/--srv--/f0.jsonl"}
    fork = [header, *first[1:], message(3, 2, "user", "Two.")]
    plan = read(first, fork)
    assert [(str(c.opened.kind), c.fork, c.prompts) for c in plan.values()] == [
        ("session", None, ["One."]),
        ("branch", ("session:s1", 2), ["Two."]),
    ]
    assert [str(c.opened.kind) for c in read(fork).values()] == ["session"]


def test_reading_again_adds_nothing() -> None:
    reader = PiReader()
    read_files(reader, BASE, TREE)
    assert [s for s in read_files(reader, BASE, TREE) if isinstance(s, Opened | Appended)] == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=5), st.booleans())
def test_pieces_give_the_plan_of_the_whole(cuts: list[float], forget: bool) -> None:
    pieces = read_in_pieces("pi", BASE, [TREE], [cuts], forget=forget)
    whole = read_in_pieces("pi", BASE, [TREE], [[]], forget=False)
    assert folded(pieces) == folded(whole)

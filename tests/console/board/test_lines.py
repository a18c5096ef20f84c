"""The one line that stands for an entry (R9)."""

import json
from typing import Any

import pytest

from console.board.lines import line_of
from console.board.models import LINE_LENGTH


def line(kind: str = "assistant", *, prompt: str = "", model: Any = None, data: Any = None) -> str:
    return line_of(
        kind=kind, prompt=prompt, model=json.dumps(model) if model else "", data=json.dumps(data if data else {})
    )


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("Cap it at once", line("user", prompt="Cap it\n at  once", model=[{"role": "user", "content": "other"}])),
        ("said", line(model=[{"role": "assistant", "content": "said"}])),
        (
            "said",
            line(
                model=[
                    {
                        "role": "assistant",
                        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "said"}],
                    }
                ]
            ),
        ),
        (
            "edit_file, run_command",
            line(
                model=[
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "tool_use", "name": "edit_file"},
                            {"type": "tool_use", "name": "run_command"},
                        ],
                    }
                ]
            ),
        ),
        ("edited Retries", line("document.edited", data={"title": "Retries"})),
        ("started Cap the schedule", line("lineage.branched", data={"intent": "Cap the schedule"})),
        ("landed a41c9e2 Capture twice", line("lineage.note", data={"sha": "a41c9e2f00", "title": "Capture twice"})),
        ("No deploys", line("lineage.note", data={"text": "No deploys"})),
        ("", line(model=[{"role": "assistant", "content": [{"type": "image"}]}])),
        ("", line(model={"role": "assistant"})),
        ("", line_of(kind="assistant", prompt="", model="{not json", data="[]")),
        ("", line_of(kind="assistant", prompt="", model="[" * 99999, data="null")),
        ("\ufffd" * 2, line(model=[{"role": "user", "content": "\ud800\0"}])),
        ("x" * (LINE_LENGTH - 1) + "…", line(model=[{"role": "user", "content": "x" * 5000}])),
    ],
)
def test_a_line_is_what_was_said_or_done(expected: str, found: str) -> None:
    assert found == expected

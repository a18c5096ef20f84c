"""What people see of tool calls, results and notices of Claude Code (L2): lines, diffs and facts in `data`."""

from typing import Any

import pytest

from tests.lineage.transcripts.reading import Script, read_scripts


def call_and_result(
    name: str, given: dict[str, Any], text: str = "done", **extra: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    script = Script()
    script.prompt("Go.")
    script.answer({"type": "tool_use", "id": "t1", "name": name, "input": given}, stop="tool_use", at=10)
    script.result("t1", text, at=14, **extra)
    (session,) = read_scripts(s1=script).values()
    _, call, result = session.entries
    return call.data["calls"][0], result.data["results"][0]


PATCH = [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 3, "lines": [" a", "-b", "+c", "+d"]}]


@pytest.mark.parametrize(
    ("name", "given", "told", "lines"),
    [
        ("Bash", {"command": "pytest -q\necho"}, {"stdout": "ok", "stderr": ""}, ("pytest -q echo", "exit 0 · 4.0 s")),
        (
            "Edit",
            {"file_path": "/home/dev/shop/cart.py", "old_string": "a\nb", "new_string": "a\nc\nd"},
            {"filePath": "/home/dev/shop/cart.py", "structuredPatch": PATCH},
            ("cart.py +2 −1", "+2 −1 · 4.0 s"),
        ),
        (
            "Write",
            {"file_path": "/home/dev/shop/a.py", "content": "x\ny\n"},
            {"structuredPatch": [], "content": "x\ny\n"},
            ("a.py +2", "+2 −0 · 4.0 s"),
        ),
        (
            "Read",
            {"file_path": "/etc/hosts", "offset": 10, "limit": 5},
            {"file": {"startLine": 10, "numLines": 5, "totalLines": 90}},
            ("/etc/hosts lines 10–14", "lines 10–14 of 90 · 4.0 s"),
        ),
        ("Grep", {"pattern": "TODO", "path": "/home/dev/shop/src"}, {"numFiles": 1}, ("TODO in src", "1 file · 4.0 s")),
        (
            "TodoWrite",
            {"todos": [{"content": "Test", "status": "in_progress"}, {"content": "x", "status": "completed"}]},
            {},
            ("1 of 2 done · Test", "4.0 s"),
        ),
        (
            "WebFetch",
            {"url": "https://example.com"},
            {"code": 200, "bytes": 12, "durationMs": 2500},
            ("https://example.com", "200 · 12 bytes · 2.5 s"),
        ),
        ("mcp__x__y", {}, {}, ("", "4.0 s")),
    ],
)
def test_one_line_for_a_call_and_one_for_its_result(
    name: str, given: dict[str, Any], told: dict[str, Any], lines: tuple[str, str]
) -> None:
    call, result = call_and_result(name, given, toolUseResult=told)
    assert (call["line"], result["line"]) == lines
    assert (call["id"], result["id"], result["name"]) == ("t1", "t1", name)


def test_an_edit_keeps_its_diff() -> None:
    _, result = call_and_result("Edit", {"file_path": "/x"}, toolUseResult={"filePath": "/x", "structuredPatch": PATCH})
    assert result["patch"] == PATCH
    assert (result["path"], result["added"], result["removed"]) == ("/x", 2, 1)


def test_a_failed_command_says_its_exit_code() -> None:
    script = Script()
    script.prompt("Go.")
    script.call("t1", command="false", message="m1")
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "Exit code 2\nno such file", "is_error": True}
    script.line("user", message={"role": "user", "content": [block]}, toolUseResult="Error: Exit code 2\nno such file")
    (session,) = read_scripts(s1=script).values()
    note = session.entries[-1].data["results"][0]
    assert (note["exit"], note["error"]) == (2, True)
    assert note["line"].startswith("exit 2 · ")
    assert session.entries[-1].model == [{"role": "user", "content": [block]}]


def test_a_command_in_the_background_and_an_interrupted_one() -> None:
    _, note = call_and_result("Bash", {"command": "serve"}, toolUseResult={"stdout": "", "backgroundTaskId": "b1"})
    assert (note["background"], note["line"]) == ("b1", "in the background · 4.0 s")
    _, note = call_and_result("Bash", {"command": "serve"}, toolUseResult={"stdout": "", "interrupted": True})
    assert (note["interrupted"], note["line"]) == (True, "interrupted · 4.0 s")


def test_answers_to_a_question_are_kept() -> None:
    _, note = call_and_result("AskUserQuestion", {}, toolUseResult={"answers": {"Which?": "Percent"}})
    assert note["answers"] == {"Which?": "Percent"}


def test_text_before_a_prompt_that_the_editor_put_there_is_no_prompt() -> None:
    script = Script()
    blocks = [
        {"type": "text", "text": "<ide_opened_file>cart.py</ide_opened_file>"},
        {"type": "text", "text": "Fix it."},
    ]
    script.line("user", message={"role": "user", "content": blocks}, parent=None)
    (session,) = read_scripts(s1=script).values()
    assert session.prompts == ["Fix it."]
    assert session.entries[0].model == [{"role": "user", "content": blocks}]


def test_a_steering_prompt_is_a_user_entry() -> None:
    script = Script()
    script.prompt("Go.")
    script.call("t1")
    script.line("attachment", attachment={"type": "queued_command", "prompt": "And be quick."})
    script.result("t1")
    (session,) = read_scripts(s1=script).values()
    assert session.prompts == ["Go.", "And be quick."]
    assert session.entries[2].data["queued"] is True
    assert session.entries[2].model == [{"role": "user", "content": "And be quick."}]


def test_hooks_speak_only_when_they_have_something_to_say() -> None:
    script = Script()
    script.prompt("Go.")
    for told in (
        {"type": "hook_success", "hookName": "PostToolUse:Edit", "stdout": "", "exitCode": 0},
        {"type": "hook_success", "hookName": "PostToolUse:Edit", "stdout": "\x1b[31mformatted\x1b[0m", "exitCode": 0},
        {"type": "hook_non_blocking_error", "hookName": "Stop", "stderr": "", "exitCode": 1},
        {"type": "todo_reminder", "content": []},
    ):
        script.line("attachment", attachment=told)
    (session,) = read_scripts(s1=script).values()
    assert [entry.data for entry in session.entries[1:]] == [
        {"type": "hook_success", "line": "PostToolUse:Edit", "text": "formatted", "exit": 0},
        {"type": "hook_non_blocking_error", "line": "Stop", "text": "", "exit": 1},
    ]


def test_where_the_session_works_is_told_once_and_at_each_change() -> None:
    script = Script()
    script.prompt("Go.")
    script.answer("Going.")
    script.line("user", message={"role": "user", "content": "On."}, gitBranch="discount", cwd="/home/dev/shop/web")
    (session,) = read_scripts(s1=script).values()
    assert [entry.data for entry in session.entries] == [
        {"cwd": "/home/dev/shop", "git_branch": "main", "version": "2.1.207"},
        {},
        {"cwd": "/home/dev/shop/web", "git_branch": "discount"},
    ]


def test_titles_in_the_order_of_their_givers() -> None:
    script = Script()
    first = script.prompt("Go.")
    assert title(script) == "Go."
    script.marker("summary", summary="Foreign", leafUuid="elsewhere")
    assert title(script) == "Go."
    script.marker("summary", summary="Own", leafUuid=first)
    assert title(script) == "Own"
    script.marker("last-prompt", lastPrompt="Go on.")
    script.marker("ai-title", aiTitle="Cart discount")
    script.marker("ai-title", aiTitle="Cart discounts")
    assert title(script) == "Cart discounts"
    script.marker("custom-title", customTitle="Discount work")
    script.marker("ai-title", aiTitle="Later")
    assert title(script) == "Discount work"


def title(script: Script) -> str:
    (session,) = read_scripts(s1=script).values()
    return session.title

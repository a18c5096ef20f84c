"""A conversation as it is read and as it grows (C1, C3, R3)."""

import pytest
from django.db import transaction
from playwright.sync_api import Page, expect

from console.access import Who
from console.pages.reading import PAGE
from lineage.actions.entries import NewEntry, lock_conversation, place_entries
from lineage.actions.states import set_state
from lineage.models import State
from tests.browser.conftest import PHONE, Tabs
from tests.factories import make_person, make_root, make_session, say


@pytest.fixture
def session(mira: Who) -> int:
    return make_session(make_root(mira), "wren").pk


def _main(page: Page, script: str) -> float:
    return float(page.locator("main").evaluate(script))


def _at_bottom(page: Page) -> bool:
    return _main(page, "e => e.scrollHeight - e.scrollTop - e.clientHeight") < 4


def test_it_begins_at_the_end_and_older_ones_come_without_a_jump(page: Page, mira: Who, session: int) -> None:
    say(mira, session, "begin", *(f"answer {n}" for n in range(1, 4 * PAGE)))
    page.goto(f"/conversations/{session}/")
    expect(page.locator(f"#e{4 * PAGE}")).to_be_in_viewport()
    expect(page.locator("#entries article")).to_have_count(PAGE - 1)  # and the end of the turn
    first = 3 * PAGE + 2
    page.locator("main").evaluate("e => e.scrollTop = 200")
    expect(page.locator("[data-shown-from]")).to_have_text(str(first - PAGE))
    top = page.locator(f"#e{first}").bounding_box()
    assert top is not None
    page.evaluate(
        """async () => {
          while (!document.querySelector("#e1")) {
            document.querySelector("main").scrollTop = 0
            await new Promise(requestAnimationFrame)
          }
        }"""
    )
    expect(page.locator("#e1")).to_have_count(1)
    expect(page.locator("#entries article")).to_have_count(4 * PAGE)
    expect(page.get_by_text("Older", exact=True)).to_have_count(0)


def test_what_the_reader_looks_at_does_not_move(page: Page, mira: Who, session: int) -> None:
    say(mira, session, "begin", *(f"answer {n}" for n in range(1, 3 * PAGE)))
    page.goto(f"/conversations/{session}/")
    held = page.evaluate(
        """async () => {
          const main = document.querySelector("main")
          const count = document.querySelectorAll("#entries article").length
          main.scrollTop = 300
          const seen = [...document.querySelectorAll("#entries article")].find((e) => e.getBoundingClientRect().top > 100)
          const before = seen.getBoundingClientRect().top
          while (document.querySelectorAll("#entries article").length === count) await new Promise(requestAnimationFrame)
          await new Promise(requestAnimationFrame)
          return [before, seen.getBoundingClientRect().top]
        }"""
    )
    assert held[0] == pytest.approx(held[1], abs=2)


def test_new_entries_arrive_and_the_page_follows(page: Page, mira: Who, session: int) -> None:
    say(mira, session, "begin", *("a long answer\n\n" * 9 for _ in range(9)))
    page.goto(f"/conversations/{session}/")
    _wait_for_live(page)
    say(mira, session, "go on", "a **new** answer")
    expect(page.locator("article strong", has_text="new")).to_be_visible()
    assert _at_bottom(page)
    expect(page.locator(".new-pill")).to_be_hidden()
    expect(page.locator("#conv-title")).to_contain_text("session, 14 entries")
    expect(page.locator("#conv-prompts li")).to_have_text(["1begin", "12go on"])
    expect(page.locator("#conv-minimap li")).to_have_count(2)


def test_a_reader_above_is_told_and_not_moved(page: Page, mira: Who, session: int) -> None:
    say(mira, session, "begin", *("a long answer\n\n" * 9 for _ in range(9)))
    page.goto(f"/conversations/{session}/")
    _wait_for_live(page)
    page.locator("main").evaluate("e => e.scrollTop = 40")
    say(mira, session, "go on", "one", "two", end=False)
    pill = page.locator(".new-pill")
    expect(pill).to_have_text("3 new")
    assert _main(page, "e => e.scrollTop") == 40
    pill.click()
    expect(page.get_by_text("two", exact=True)).to_be_in_viewport()
    expect(pill).to_be_hidden()


def test_a_result_joins_its_call_and_open_folds_stay_open(page: Page, session: int) -> None:
    call = {"type": "tool_use", "id": "a", "name": "run_command", "input": {"command": "pytest"}}
    _place(session, NewEntry(kind="assistant", model=[{"role": "assistant", "content": [call]}]))
    page.goto(f"/conversations/{session}/")
    line = page.locator("summary", has_text="run_command")
    expect(line).to_contain_text("no result yet")
    line.click()
    block = {"type": "tool_result", "tool_use_id": "a", "content": "11 passed"}
    _place(session, NewEntry(kind="tool_result", model=[{"role": "user", "content": [block]}]))
    expect(page.get_by_text("11 passed")).to_be_visible()
    expect(page.locator("#entries article")).to_have_count(1)


def test_the_state_changes_in_place(page: Page, mira: Who, session: int) -> None:
    say(mira, session, "begin", "yes")
    page.goto(f"/conversations/{session}/")
    expect(page.locator("#conv-state")).to_contain_text("Idle")
    with transaction.atomic():
        set_state(conversation=lock_conversation(session), state=State.ANSWER, why="Which tax?")
    expect(page.locator("#conv-state")).to_contain_text("Waiting for an answer")
    expect(page.get_by_text("Which tax?")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()


def test_a_deep_link_shows_its_entry(page: Page, mira: Who, session: int) -> None:
    say(mira, session, "begin", *(f"answer {n}" for n in range(1, 300)))
    page.goto(f"/conversations/{session}/?at=100#e100")
    expect(page.locator("#e100")).to_be_in_viewport()
    page.goto(f"/conversations/{session}/#e50")
    page.wait_for_url("**/?at=50#e50")
    expect(page.locator("#e50")).to_be_in_viewport()
    say(mira, session, "more", "and more", end=False)
    expect(page.locator(".new-pill")).to_have_text("2 new")
    page.locator(".new-pill").click()
    page.wait_for_url(f"**/conversations/{session}/")
    expect(page.get_by_text("and more")).to_be_in_viewport()


def test_show_all_shows_all(page: Page, session: int) -> None:
    text = "\n".join(f"line {n}" for n in range(1, 500))
    call = {"type": "tool_use", "id": "a", "name": "run_command", "input": {"command": "seq 499"}}
    block = {"type": "tool_result", "tool_use_id": "a", "content": text}
    _place(
        session,
        NewEntry(kind="assistant", model=[{"role": "assistant", "content": [call]}]),
        NewEntry(kind="tool_result", model=[{"role": "user", "content": [block]}]),
    )
    page.goto(f"/conversations/{session}/")
    page.locator("summary", has_text="run_command").click()
    expect(page.get_by_text("the last 459 lines are not shown")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_text("line 499")).to_have_count(1)
    expect(page.get_by_role("button", name="Show all")).to_have_count(0)


def test_a_phone_reads_and_unfolds(tabs: Tabs, mira: Who, session: int) -> None:
    call = {
        "type": "tool_use",
        "id": "a",
        "name": "edit_file",
        "input": {"path": "w.py", "old_string": "a" * 200, "new_string": "b"},
    }
    say(mira, session, "begin", "word " * 300, end=False)
    _place(session, NewEntry(kind="assistant", model=[{"role": "assistant", "content": [call]}]))
    page = tabs.open(mira, viewport=PHONE)
    page.goto(f"/conversations/{session}/")
    page.locator("summary", has_text="edit_file").tap() if False else page.locator(
        "summary", has_text="edit_file"
    ).click()
    expect(page.get_by_role("region", name="Diff")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.get_by_label("Message")).to_be_in_viewport()


def test_a_stranger_gets_no_page(tabs: Tabs, mira: Who, session: int) -> None:
    say(mira, session, "a secret plan")
    page = tabs.open(make_person("rui"))
    page.goto(f"/conversations/{session}/")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    assert "secret" not in page.content()


def _place(conversation: int, *entries: NewEntry) -> None:
    with transaction.atomic():
        place_entries(conversation=lock_conversation(conversation), entries=entries)


def _wait_for_live(page: Page) -> None:
    """Until the socket has answered: what is said before it would be part of the page."""
    expect(page.locator("#flow")).to_have_attribute("data-live", "1")

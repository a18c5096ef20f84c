"""The board as it changes, and the wall that never looks live when it is not (C1, R3)."""

from django.db import transaction
from playwright.sync_api import Page, expect

from console.access import Who
from console.board.keeping import fold_touched
from lineage.actions.entries import lock_conversation
from lineage.actions.states import set_state
from lineage.models import State
from tests.browser.conftest import Tabs, contrast_faults
from tests.factories import make_root, make_session, say


def _fold() -> None:
    while fold_touched():
        pass


def _wait(conversation: int, state: State, why: str = "") -> None:
    with transaction.atomic():
        set_state(conversation=lock_conversation(conversation), state=state, why=why)
    _fold()


def _wait_for_live(page: Page) -> None:
    expect(page.locator(".board-box")).to_have_attribute("data-live", "1")


def test_rows_and_needs_change_in_place(tabs: Tabs, mira: Who) -> None:
    root = make_root(mira, "Checkout service")
    session = make_session(root, "wren").pk
    say(mira, session, "begin", "first words")
    _fold()
    page = tabs.open(mira)
    row = page.locator(f"#root-{root.pk}")
    expect(row).to_contain_text("first words")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    _wait_for_live(page)
    say(mira, session, "go on", "second words", end=False)
    _fold()
    expect(row).to_contain_text("second words")
    expect(row.get_by_label("running")).to_be_visible()
    _wait(session, State.ANSWER, "Which tax?")
    expect(page.locator(f"#need-{session}")).to_contain_text("Which tax?")
    expect(page.get_by_role("link", name="1 need you")).to_be_visible()
    _wait(session, State.IDLE)
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    expect(page.get_by_role("link", name="need you")).to_have_count(0)


def test_what_is_over_stays_in_place_under_the_pointer(tabs: Tabs, mira: Who) -> None:
    root = make_root(mira)
    first, second = make_session(root, "first").pk, make_session(root, "second").pk
    _wait(first, State.ANSWER, "one?")
    _wait(second, State.ANSWER, "two?")
    page = tabs.open(mira)
    _wait_for_live(page)
    below = page.locator(f"#need-{second}")
    below.hover()
    before = below.bounding_box()
    _wait(first, State.IDLE)
    expect(page.locator(f"#need-{first}")).to_have_class("ask ask-answer gone")
    assert below.bounding_box() == before
    page.mouse.move(5, 5)
    expect(page.locator(f"#need-{first}")).to_have_count(0)


def test_the_wall_says_when_it_is_stale(tabs: Tabs, mira: Who) -> None:
    make_root(mira)
    _fold()
    page = tabs.open(mira, scheme="dark")
    page.goto("/?wall")
    expect(page.get_by_text("Live", exact=True).first).to_be_visible()
    expect(page.locator(".wall-clock")).to_have_text(page.evaluate("new Date().toTimeString().slice(0, 5)"))
    assert contrast_faults(page) == []
    expect(page.get_by_role("button")).to_have_count(0)
    page.route_web_socket("**/live/", lambda socket: socket.close())
    page.reload()
    expect(page.locator(".wall-late")).to_contain_text("Catching up")
    expect(page.locator(".wall-live")).to_be_hidden()


def test_a_board_is_readable(tabs: Tabs, mira: Who) -> None:
    root = make_root(mira)
    session = make_session(root, "wren").pk
    say(mira, session, "begin", "words", end=False)
    for state, why in ((State.ANSWER, "one?"), (State.FAILED, "no answer")):
        _wait(make_session(root, str(state)).pk, state, why)
    for scheme in ("light", "dark"):
        page = tabs.open(mira, scheme=scheme)
        expect(page.locator(".ask")).to_have_count(2)
        assert contrast_faults(page) == []


def test_a_tree_changes_in_place(tabs: Tabs, mira: Who) -> None:
    root = make_root(mira, "Checkout service")
    session = make_session(root, "wren").pk
    _fold()
    page = tabs.open(mira)
    page.goto(f"/roots/{root.pk}/")
    expect(page.locator("[data-behaviour~=watching]")).to_have_attribute("data-live", "1")
    say(mira, session, "begin", end=False)
    _fold()
    expect(page.locator("#outline").get_by_label("running")).to_be_visible()
    expect(page.locator("#tree-facts")).to_contain_text("1")

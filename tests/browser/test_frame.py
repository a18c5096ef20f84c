"""What every page has: scheme, panes, keys, palette, labels; with a mouse, a keyboard and on a phone (C4)."""

import pytest
from playwright.sync_api import Page, expect

from console.access import Who
from console.actions.people import make_signin_link
from console.board.keeping import fold_touched
from console.models import User
from console.search.keeping import read_due
from tests.browser.conftest import PHONE, Tabs, contrast_faults
from tests.factories import make_person, make_root, make_session, say

PATHS = [
    "/",
    "/account/",
    "/signin/",
    "/roots/{root}/",
    "/conversations/{session}/",
    "/search/",
    "/search/?q=begin",
    "/conversations/999999/",
    "/nowhere/",
]


@pytest.fixture
def places(mira: Who) -> dict[str, int]:
    root = make_root(mira)
    session = make_session(root, "wren")
    say(mira, session.pk, "begin", "**yes**, see #1/2 and https://example.org", "`code`\n\n```python\nx = 1\n```")
    return {"root": root.pk, "session": session.pk}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("phone", [False, True])
def test_every_page_is_readable(tabs: Tabs, mira: Who, places: dict[str, int], scheme: str, phone: bool) -> None:
    """WCAG AA contrast, a label for every control, one first heading, and no sideways scrolling."""
    page = tabs.open(mira, scheme=scheme, **({"viewport": PHONE} if phone else {}))
    for path in PATHS:
        page.goto(path.format(**places))
        assert contrast_faults(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert page.locator("h1").count() == 1, path
        assert page.title().endswith("· Lineage"), path
        assert _nameless(page) == [], path


def _nameless(page: Page) -> list[str]:
    """Controls that a screen reader could not name."""
    found: list[str] = page.evaluate(
        """() => {
          const named = (e) => e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim() || e.title
          return [...document.querySelectorAll("a[href], button, input:not([type=hidden]), textarea, select")]
            .filter((e) => e.checkVisibility() && !named(e))
            .map((e) => e.outerHTML.slice(0, 120))
        }"""
    )
    return found


def test_a_one_time_link_signs_in(tabs: Tabs, mira: Who) -> None:
    """S1: looking at the link spends nothing, pressing the button does."""
    page = tabs.open()
    link = f"/signin/{make_signin_link(username=User.objects.get(actor=mira.actor).username)}/"
    page.goto(link)
    page.reload()
    page.get_by_role("button", name="Sign in as").click()
    page.wait_for_url("/")
    expect(page.get_by_role("link", name=mira.name)).to_be_visible()
    page.goto(link)
    expect(page.get_by_role("button", name="Sign in as")).to_have_count(0)


def test_the_scheme_is_kept_without_a_flash(page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Switch between light and dark").click()
    dark = page.evaluate(ground)
    assert dark != light
    html = page.request.get("/").text()
    assert 'data-scheme="dark"' in html
    page.reload()
    assert page.evaluate(ground) == dark
    page.get_by_role("button", name="Switch between light and dark").click()
    assert "data-scheme" not in page.request.get("/").text().split(">")[1]


def test_panes_fold_and_keep_their_width(page: Page, places: dict[str, int]) -> None:
    page.goto(f"/roots/{places['root']}/")
    left = page.locator(".pane-left")
    page.keyboard.press("[")
    expect(left).to_be_hidden()
    page.reload()
    expect(left).to_be_hidden()
    page.get_by_role("button", name="Unfold the pane Tree").click()
    expect(left).to_be_visible()
    before = left.evaluate("e => e.offsetWidth")
    grip = left.get_by_role("separator")
    grip.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert left.evaluate("e => e.offsetWidth") == before + 48
    page.reload()
    assert left.evaluate("e => e.offsetWidth") == before + 48


def test_the_grip_is_dragged(page: Page, places: dict[str, int]) -> None:
    page.goto(f"/roots/{places['root']}/")
    right = page.locator(".pane-right")
    box = right.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 3, 300)
    page.mouse.down()
    page.mouse.move(box["x"] - 61, 300, steps=4)
    page.mouse.up()
    assert right.evaluate("e => e.offsetWidth") == round(box["width"]) + 64


def test_the_palette_goes_anywhere_by_keyboard(page: Page, places: dict[str, int]) -> None:
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox")
    expect(box).to_be_focused()
    box.fill(f"#{places['session']}")
    option = page.get_by_role("option").first
    expect(option).to_contain_text("wren")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/conversations/{places['session']}/")


def test_the_palette_leads_to_the_search(page: Page, mira: Who) -> None:
    """C5: from anywhere by keyboard, with what was typed; a result leads to its place."""
    root = make_root(mira)
    say(mira, root.pk, "Why is the status page slow?", "38 queries")
    while fold_touched() or read_due():
        pass
    page.keyboard.press("/")
    page.get_by_role("combobox").fill("queries")
    expect(page.get_by_role("option").first).to_contain_text("Search everything for “queries”")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=queries")
    expect(page.locator(".results mark")).to_have_text("queries")
    page.get_by_role("link", name="Checkout service").click()
    page.wait_for_url(f"**/conversations/{root.pk}/?at=2#e2")


def test_the_palette_does_what_the_page_can(page: Page, places: dict[str, int]) -> None:
    page.goto(f"/roots/{places['root']}/")
    page.keyboard.press("/")
    page.get_by_role("combobox").fill("start branch")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Start a branch")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_palette_says_when_the_server_is_away(tabs: Tabs, page: Page) -> None:
    tabs.expected.append("Failed to load resource: net::ERR_FAILED")
    page.route("**/palette/**", lambda route: route.abort())
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("x")
    expect(page.get_by_text("The server does not answer")).to_be_visible()


def test_keys_are_listed_and_do_not_disturb_typing(page: Page, places: dict[str, int]) -> None:
    page.goto(f"/conversations/{places['session']}/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("r")
    message = page.get_by_label("Message")
    expect(message).to_be_focused()
    page.keyboard.type("[?jk.]")
    expect(message).to_have_value("[?jk.]")
    expect(page.locator(".pane-left")).to_be_visible()


def test_a_key_right_after_a_dialog_is_meant_for_the_page(page: Page, places: dict[str, int]) -> None:
    """The browser leaves the focus in a closed dialog until it draws the next frame."""
    page.goto(f"/conversations/{places['session']}/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.evaluate(
        """() => {
            const within = document.activeElement
            within.closest("dialog").close()
            within.dispatchEvent(new KeyboardEvent("keydown", { key: "r", bubbles: true, cancelable: true }))
        }"""
    )
    expect(page.get_by_label("Message")).to_be_focused()


def test_rows_are_walked_by_keyboard(page: Page, places: dict[str, int]) -> None:
    page.goto(f"/roots/{places['root']}/")
    page.keyboard.press("j")
    expect(page.locator("[data-row].at")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/conversations/{places['session']}/")


def test_a_phone_reaches_tree_and_facts_in_sheets(tabs: Tabs, mira: Who, places: dict[str, int]) -> None:
    page = tabs.open(mira, viewport=PHONE)
    page.goto(f"/conversations/{places['session']}/")
    expect(page.locator(".pane-left")).to_be_hidden()
    page.get_by_role("navigation", name="Main").get_by_role("button", name="Tree").click()
    expect(page.get_by_role("complementary", name="Tree")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".pane-left")).to_be_hidden()
    page.get_by_role("button", name="Facts, prompts, usage").click()
    expect(page.get_by_role("complementary", name="Facts of the conversation")).to_be_visible()
    page.locator("main h1").click()
    expect(page.locator(".pane-right")).to_be_hidden()


def test_times_are_the_readers_own(page: Page, places: dict[str, int]) -> None:
    page.goto(f"/conversations/{places['session']}/")
    time = page.locator("article time").first
    expect(time).to_have_attribute("data-own", "1")
    assert "UTC" not in (time.get_attribute("title") or "UTC")


def test_commands_are_copied(page: Page) -> None:
    page.get_by_role("button", name="Copy the command").first.click()
    assert page.evaluate("navigator.clipboard.readText()") == "uv run manage.py watch"
    expect(page.get_by_role("button", name="Copied")).to_be_visible()


def test_the_administration_obeys_the_csp(tabs: Tabs, places: dict[str, int]) -> None:
    page = tabs.open(make_person("boss", superuser=True))
    for path in ("/admin/", "/admin/lineage/conversation/", "/admin/lineage/entry/", "/admin/console/user/"):
        page.goto(path)
        expect(page.get_by_role("heading").first).to_be_visible()
    page.goto("/admin/lineage/entry/")
    page.locator("#result_list tbody th a").first.click()
    expect(page.get_by_text("View entry")).to_be_visible()

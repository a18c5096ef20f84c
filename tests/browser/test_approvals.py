"""Approvals as people decide them: by pointer, by key, on a phone, in both schemes (A3, C4)."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from console.access import Who
from lineage.actions.approvals import decide_approval
from lineage.models import Approval, Conversation
from tests.browser.conftest import PHONE, Tabs, contrast_faults
from tests.factories import make_root
from tests.lineage.agent.conftest import model
from tests.lineage.agent.fakemodel import FakeModel
from tests.lineage.agent.test_approvals import EDIT, calls, command
from tests.lineage.agent.test_turns import ask
from tests.lineage.working import work

__all__ = ["model"]  # a fixture


@pytest.fixture
def conversation(model: FakeModel, mira: Who, tmp_path: Path) -> Conversation:
    """One edit and one command wait in it."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    found = make_root(mira, folder=str(tmp_path)).conversation
    calls(model, EDIT, command("rm -rf var/cache && " + "echo a-long-word-without-any-space-in-it-" * 6))
    ask(mira, found)
    work()
    return found


def statuses() -> list[str]:
    return [row.status for row in Approval.objects.order_by("pk")]


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_keys_decide_what_the_reader_is_at(page: Page, conversation: Conversation) -> None:
    page.goto("/approvals/")
    expect(page.locator("article.ap")).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.locator("article.ap")).to_have_count(1)
    expect(page.locator("article.ap .cmd")).to_contain_text("rm -rf")
    assert statuses() == ["approved", "waiting"]
    page.keyboard.press("j")
    page.keyboard.press("d")
    expect(page.locator("article.ap")).to_have_count(0)
    expect(page.get_by_text("Nothing waits for a decision")).to_be_visible()
    assert statuses() == ["approved", "declined"]
    page.get_by_role("link", name="Decided").click()
    expect(page.locator("tbody tr")).to_have_count(2)


def test_who_was_first_is_told(page: Page, mira: Who, conversation: Conversation) -> None:
    page.goto("/approvals/")
    first = Approval.objects.order_by("pk")[0]
    decide_approval(who=mira, approval=first.pk, decision="approve")
    page.locator(f"#a{first.pk}").get_by_role("button", name="Decline").click()
    expect(page.locator("#toasts")).to_contain_text("approved by mira")
    expect(page.locator("article.ap")).to_have_count(1)


def test_news_takes_nothing_from_under_the_readers_hands(page: Page, mira: Who, conversation: Conversation) -> None:
    """What the server renders anew is turned into what stands there: a comment stays, a button that is being pressed too."""
    page.goto(f"/conversations/{conversation.pk}/")
    second = page.locator(".approval").last
    second.get_by_label("Comment").fill("not on a Friday")
    button = second.get_by_role("button", name="Decline").element_handle()
    decide_approval(who=mira, approval=Approval.objects.order_by("pk")[0].pk, decision="approve")
    expect(page.locator(".approval")).to_have_count(1)
    expect(page.get_by_label("Comment")).to_have_value("not on a Friday")
    assert button.evaluate("button => button.isConnected")
    page.get_by_role("button", name="Decline").click()
    expect(page.locator(".approval")).to_have_count(0)
    assert Approval.objects.order_by("pk")[1].comment == "not on a Friday"


def test_always_makes_a_rule_that_can_be_ended(page: Page, conversation: Conversation) -> None:
    page.goto(f"/conversations/{conversation.pk}/")
    edit = page.locator(".approval").first
    edit.get_by_text("Always for this root").click()
    edit.get_by_label("Allow without asking").fill("*.txt")
    edit.get_by_role("button", name="Approve and add the rule").click()
    expect(page.locator(".approval")).to_have_count(1)
    page.goto("/approvals/")
    expect(page.locator("#rules")).to_contain_text("edit_file *.txt")
    page.get_by_role("button", name="End").click()
    expect(page.locator("#rules tr")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_on_a_phone(tabs: Tabs, mira: Who, conversation: Conversation, scheme: str) -> None:
    page = tabs.open(mira, viewport=PHONE, scheme=scheme)
    for address in ("/approvals/", f"/conversations/{conversation.pk}/", f"/conversations/{conversation.pk}/requests/"):
        page.goto(address)
        assert fits(page), address
        assert contrast_faults(page) == []
    page.goto("/approvals/")
    for button in page.get_by_role("button", name="Approve", exact=False).all():
        box = button.bounding_box()
        assert box is None or box["height"] >= 40
    page.locator("article.ap").first.get_by_role("button", name="Approve").first.click()
    expect(page.locator("article.ap")).to_have_count(1)

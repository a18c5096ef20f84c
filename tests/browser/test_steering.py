"""Asking, approving, stopping and branching, at a desk and on a phone (C4, A3, L6)."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from console.access import Who
from console.board.keeping import fold_touched
from lineage.models import Approval, Conversation
from tests.browser.conftest import PHONE, Tabs, contrast_faults
from tests.factories import make_root
from tests.lineage.agent.conftest import model as model
from tests.lineage.agent.fakemodel import FakeModel
from tests.lineage.agent.test_approvals import calls, command
from tests.lineage.working import work


@pytest.fixture
def conversation(mira: Who, tmp_path: Path) -> Conversation:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    return make_root(mira, "Checkout service", folder=str(tmp_path)).conversation


def _open(page: Page, conversation: Conversation) -> None:
    page.goto(f"/conversations/{conversation.pk}/")
    expect(page.locator("#flow")).to_have_attribute("data-live", "1")


def _send(page: Page, text: str) -> None:
    box = page.get_by_label("Message")
    box.fill(text)
    page.get_by_role("button", name="Send").click()
    expect(box).to_have_value("")


@pytest.mark.parametrize("phone", [False, True])
def test_ask_approve_and_read_the_answer(
    tabs: Tabs, mira: Who, conversation: Conversation, model: FakeModel, phone: bool
) -> None:
    calls(model, command("cat a.txt"), answer="It holds **two** lines.")
    page = tabs.open(mira, viewport=PHONE) if phone else tabs.open(mira)
    _open(page, conversation)
    _send(page, "What is in a.txt?")
    work()
    expect(page.locator("#entries").get_by_text("What is in a.txt?").first).to_be_visible()
    asked = page.locator(".approval")
    expect(asked).to_contain_text("cat a.txt")
    expect(page.locator("#conv-state")).to_contain_text("Needs approval")
    assert contrast_faults(page) == []
    asked.get_by_role("button", name="Approve", exact=False).first.click()
    expect(page.get_by_text("Approved.", exact=True)).to_be_visible()
    work()
    expect(page.locator("#entries strong", has_text="two")).to_be_visible()
    expect(page.locator(".approval")).to_have_count(0)
    expect(page.locator("#conv-state")).to_contain_text("Idle")
    assert Approval.objects.get().decided_by_id == mira.actor


@pytest.mark.parametrize("phone", [False, True])
def test_stop_ends_what_waits(tabs: Tabs, mira: Who, conversation: Conversation, model: FakeModel, phone: bool) -> None:
    calls(model, command("sleep 600"))
    page = tabs.open(mira, viewport=PHONE) if phone else tabs.open(mira)
    _open(page, conversation)
    _send(page, "Wait.")
    work()
    expect(page.locator(".approval")).to_be_visible()
    if phone:
        page.get_by_role("button", name="Stop").click()
    else:
        page.locator("main h1").click()
        page.keyboard.press(".")
    expect(page.locator(".approval")).to_have_count(0)
    work()
    expect(page.locator("#conv-state")).to_contain_text("Idle")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)


def test_the_board_decides_in_place(tabs: Tabs, mira: Who, conversation: Conversation, model: FakeModel) -> None:
    calls(model, command("cat a.txt"), command("ls"))
    page = tabs.open(mira)
    _open(page, conversation)
    _send(page, "Look around.")
    work()
    while fold_touched():
        pass
    page.goto("/")
    expect(page.locator(".board-box")).to_have_attribute("data-live", "1")
    row = page.locator(f"#need-{conversation.pk}")
    expect(row).to_contain_text("cat a.txt")
    expect(row).to_contain_text("and 1 more")
    page.keyboard.press("d")  # the first press only goes there
    expect(row).to_be_focused()
    assert not Approval.objects.exclude(status="waiting").exists()
    page.keyboard.press("d")
    expect(page.get_by_text("Declined.", exact=True)).to_be_visible()
    assert [row.status for row in Approval.objects.order_by("pk")] == ["declined", "waiting"]
    page.locator("#roots-h").click()
    work()
    while fold_touched():
        pass
    expect(row).to_contain_text("ls")
    row.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved.", exact=True)).to_be_visible()


def test_a_branch_starts_where_the_reader_stands(
    tabs: Tabs, mira: Who, conversation: Conversation, model: FakeModel
) -> None:
    model.rules({"respond": {"content": "Done."}})
    page = tabs.open(mira)
    _open(page, conversation)
    _send(page, "Begin.")
    work()
    expect(page.get_by_text("Done.", exact=True)).to_be_visible()
    page.locator("#e1").click()
    page.keyboard.press("f")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("from entry 1")
    dialog.get_by_label("What it should do").fill("Try it another way")
    dialog.get_by_role("button", name="Start").click()
    page.wait_for_url(lambda url: f"/conversations/{conversation.pk}/" not in url and "/conversations/" in url)
    branch = Conversation.objects.get(kind="branch")
    assert branch.at == 1
    expect(page.get_by_text(f"forked from #{conversation.pk}/1")).to_be_visible()
    work()
    expect(page.locator("#entries")).to_contain_text("Try it another way")


def test_a_refusal_keeps_what_was_typed(tabs: Tabs, mira: Who, conversation: Conversation) -> None:
    page = tabs.open(mira)
    _open(page, conversation)
    page.route("**/submissions", lambda route: route.fulfill(status=409, json={"error": {"message": "It is a tally."}}))
    page.get_by_label("Message").fill("a long thought")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("It is a tally.")
    expect(page.get_by_label("Message")).to_have_value("a long thought")

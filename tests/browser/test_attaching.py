"""Attaching files to a message: chosen, dropped, pasted; what became of them; and what agents have read of them (D18-D20, C4)."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from console.access import Who
from documents.attachments.limits import UPLOAD_BYTES
from documents.models import Attachment
from lineage.models import Conversation
from tests.browser.conftest import PHONE, Tabs, contrast_faults
from tests.factories import make_root
from tests.lineage.agent.conftest import model as model
from tests.lineage.agent.fakemodel import FakeModel
from tests.lineage.working import work

HAND_OVER = """(text, how) => {
  const data = new DataTransfer()
  for (const [name, content] of text) data.items.add(new File([content], name))
  const place = how === "paste" ? document.getElementById("say") : document.querySelector("main")
  const event = how === "paste"
    ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
    : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
  place.dispatchEvent(event)
}"""


@pytest.fixture
def conversation(mira: Who) -> Conversation:
    return make_root(mira, "Checkout service").conversation


def _open(page: Page, conversation: Conversation) -> None:
    page.goto(f"/conversations/{conversation.pk}/")
    expect(page.locator("#flow")).to_have_attribute("data-live", "1")


def _hand_over(page: Page, how: str, *files: tuple[str, str]) -> None:
    page.evaluate(f"([files, how]) => ({HAND_OVER})(files, how)", [[list(file) for file in files], how])


@pytest.mark.parametrize("phone", [False, True])
def test_a_file_is_chosen_extracted_sent_and_read(
    tabs: Tabs, mira: Who, conversation: Conversation, model: FakeModel, tmp_path: Path, phone: bool
) -> None:
    model.says("It says Thursday.")
    (tmp_path / "plan.md").write_text("Ship on Thursday.")
    page = tabs.open(mira, viewport=PHONE, scheme="dark") if phone else tabs.open(mira)
    _open(page, conversation)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    chooser.value.set_files(tmp_path / "plan.md")
    chip = page.locator(".chip")
    expect(chip.locator(".state")).to_have_text("extracting")
    work()
    expect(chip.locator(".state")).to_have_text("17 characters")
    assert contrast_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.get_by_label("Message").fill("When do we ship?")
    page.get_by_role("button", name="Send").click()
    expect(chip).to_have_count(0)
    work()
    expect(page.locator("#entries .prompt .att")).to_have_text("plan.md")
    expect(page.locator("#entries")).to_contain_text("It says Thursday.")
    assert "Ship on Thursday." in str(model.requests()[0]["messages"])
    if phone:
        page.get_by_role("button", name="Facts, prompts, usage").click()
    listed = page.locator("#conv-attachments li")
    expect(listed).to_contain_text("read 17 of 17")
    expect(listed).to_contain_text(f"#{conversation.pk}/")
    assert contrast_faults(page) == []
    listed.get_by_role("link", name="plan.md").click()
    expect(page.locator("pre.text")).to_have_text("Ship on Thursday.")
    expect(page.locator("main")).to_contain_text("Agents have read 17 of 17 characters.")


def test_dropped_and_pasted_files_are_chips_that_can_be_removed(page: Page, conversation: Conversation) -> None:
    _open(page, conversation)
    _hand_over(page, "drop", ("empty.txt", ""), ("notes.txt", "n"))
    _hand_over(page, "paste", ("image.txt", "p"))
    expect(page.locator(".chip[data-name]")).to_have_count(3)
    work()
    expect(page.locator(".chip", has_text="empty.txt").locator(".state")).to_have_text("an empty file")
    unreadable = page.locator("#conv-attachments li", has_text="empty.txt")
    expect(unreadable).to_contain_text("an empty file, not sent")

    page.locator("#say").press("Enter")
    expect(page.locator("#toasts")).to_contain_text("Say what is to be done with the files")
    page.get_by_role("button", name="Remove notes.txt").press("Enter")
    expect(page.get_by_role("button", name="Remove image.txt")).to_be_focused()
    expect(page.locator("#conv-attachments li")).to_have_count(2)
    assert not Attachment.objects.filter(filename="notes.txt").exists()
    page.reload()
    expect(page.locator(".chip")).to_have_count(2)


def test_a_refused_file_is_said_why(page: Page, conversation: Conversation) -> None:
    _open(page, conversation)
    _hand_over(page, "drop", ("", "nameless"))
    expect(page.locator("#toasts")).to_contain_text("A file without a name cannot be attached")
    large = f"new File([new Uint8Array({UPLOAD_BYTES + 1})], 'disk.iso')"
    page.evaluate(f"""() => {{
      const data = new DataTransfer()
      data.items.add({large})
      document.querySelector("main").dispatchEvent(new DragEvent("drop", {{ dataTransfer: data, bubbles: true }}))
    }}""")
    expect(page.locator("#toasts")).to_contain_text(
        re.compile(r"disk.iso has .* bytes; an attachment has at most .*\. Attach a part")
    )
    expect(page.locator(".chip")).to_have_count(0)
    assert not Attachment.objects.exists()

"""Live documents in real browsers: two people and an agent in one text (D12 to D17)."""

import json
import re

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from console.access import Who
from console.clock import now
from console.errors import DomainError
from console.models import Membership, Role
from documents.actions import edit_document
from documents.edits import Edit
from documents.models import Document
from documents.texts import text_at
from lineage.models import Root
from tests.browser.conftest import PHONE, Tabs, contrast_faults
from tests.factories import make_agent, make_document, make_person, make_root

TEXT = "# Plan\n\none two three\r\n😀 four\nlast line\n"
MEBIBYTE = 1024 * 1024


@pytest.fixture
def root(mira: Who) -> Root:
    return make_root(mira)


@pytest.fixture
def document(mira: Who, root: Root) -> Document:
    return make_document(mira, root.pk, TEXT)


@pytest.fixture
def teo(root: Root) -> Who:
    """Another operator of the root."""
    who = make_person("teo")
    Membership.objects.create(root=root, actor_id=who.actor, role=Role.OPERATOR, created=now())
    return who


@pytest.fixture
def wren(root: Root) -> Who:
    """An agent of the root."""
    return make_agent(root, "wren")[0]


def open_document(page: Page, document: Document) -> Page:
    page.goto(f"/documents/{document.pk}/")
    expect(page.locator(".cm-content")).to_be_visible()
    return page


def saved(page: Page, revision: int) -> None:
    """Waits until the page has that revision and nothing unsaved."""
    expect(page.locator("#saved")).to_have_text(f"Saved, r{revision}")


def text_of(page: Page) -> str:
    """The whole text of the editor, also what it does not draw."""
    text: str = page.evaluate(
        """async () => {
          const { EditorView } = await import("/static/built/codemirror.js")
          return EditorView.findFromDOM(document.querySelector(".cm-editor")).state.doc.toString()
        }"""
    )
    return text


def recorded(document: Document) -> tuple[str, int]:
    document.refresh_from_db()
    return text_at(document, document.revision), document.revision


def put_cursor(page: Page, line: int, end: bool = True) -> None:
    page.locator(".cm-line").nth(line - 1).click()
    page.keyboard.press("End" if end else "Home")


def test_two_people_type_in_one_line(tabs: Tabs, mira: Who, teo: Who, document: Document) -> None:
    one, two = open_document(tabs.open(mira), document), open_document(tabs.open(teo), document)
    put_cursor(one, 5)
    put_cursor(two, 5, end=False)
    for left, right in zip("MIRA!", "TEO..", strict=True):
        one.keyboard.type(left)
        two.keyboard.type(right)
    for page in (one, two):
        expect(page.locator(".cm-line").nth(4)).to_have_text("TEO..last lineMIRA!")
        expect(page.locator("#saved")).to_have_text(re.compile(r"^Saved, r\d+$"))
    text, revision = recorded(document)
    saved(one, revision)
    saved(two, revision)
    assert text == TEXT.replace("last line", "TEO..last lineMIRA!")
    assert text_of(one) == text_of(two) == text


def test_what_one_types_the_other_sees_at_once(tabs: Tabs, mira: Who, teo: Who, document: Document) -> None:
    one, two = open_document(tabs.open(mira), document), open_document(tabs.open(teo), document)
    put_cursor(one, 3)
    two.evaluate(
        """() => new MutationObserver(() => {
          if (document.querySelector(".cm-content").textContent.includes("seen")) window.seenAt ??= Date.now()
        }).observe(document.querySelector(".cm-content"), { childList: true, subtree: true, characterData: true })"""
    )
    typed_at = one.evaluate("Date.now()")
    one.keyboard.insert_text("seen")
    expect(two.locator(".cm-content")).to_contain_text("seen")
    assert two.evaluate("window.seenAt") - typed_at < 2_000  # about 0.1 s; the bound is for a busy machine


def test_undo_takes_back_only_ones_own(tabs: Tabs, mira: Who, teo: Who, document: Document) -> None:
    one, two = open_document(tabs.open(mira), document), open_document(tabs.open(teo), document)
    put_cursor(one, 5)
    one.keyboard.insert_text(" mine")
    saved(two, 1)
    put_cursor(two, 5, end=False)
    two.keyboard.insert_text("theirs ")
    expect(one.locator(".cm-line").nth(4)).to_contain_text("theirs last line mine")
    saved(one, 2)
    one.keyboard.press("Control+z")
    saved(one, 3)
    assert recorded(document)[0] == TEXT.replace("last line", "theirs last line")
    one.keyboard.press("Control+Shift+z")
    saved(one, 4)
    assert recorded(document)[0] == TEXT.replace("last line", "theirs last line mine")


def test_an_agents_edit_stays_hatched_until_it_is_read(tabs: Tabs, mira: Who, wren: Who, document: Document) -> None:
    page = open_document(tabs.open(mira), document)
    edit_document(who=wren, document=document.pk, edits=[Edit("two", "two and a half")])
    expect(page.locator(".unread")).to_have_text("and a half", use_inner_text=False)
    expect(page.locator(".un")).to_have_text("wren, r1")
    expect(page.locator("#next-unread")).to_have_text("1 unread agent edit")
    expect(page.locator(".unread.flash")).to_have_count(0)  # it flashed once, and is calm again
    expect(page.locator("#shares")).to_contain_text("wren")
    page.locator("#next-unread").click()
    expect(page.locator(".unread")).to_have_count(0)
    expect(page.locator("#next-unread")).to_be_hidden()
    # The reader's own authors: the stripe is mira's, what wren wrote in her line is under-lined.
    expect(page.locator(".by.ag")).to_have_text("and a half")


def test_an_agents_refused_batch_is_shown_with_what_comes_nearest(
    tabs: Tabs, mira: Who, wren: Who, document: Document
) -> None:
    page = open_document(tabs.open(mira), document)
    with pytest.raises(DomainError):
        edit_document(who=wren, document=document.pk, edits=[Edit("# Plan", "# P"), Edit("one two tree", "x")])
    card = page.locator(".refused")
    expect(card).to_contain_text("wren sent 2 edits at revision 0. Edit 2 could not be applied, so none was.")
    expect(card.locator(".near")).to_contain_text("Nearest, line 3")
    card.get_by_role("button", name="Go to line 3").click()
    expect(page.locator("#place")).to_have_text("Line 3, column 1")
    assert recorded(document) == (TEXT, 0)


def test_the_others_are_seen_where_they_are(tabs: Tabs, mira: Who, teo: Who, document: Document) -> None:
    one, two = open_document(tabs.open(mira), document), open_document(tabs.open(teo), document)
    put_cursor(two, 3)
    two.keyboard.press("Shift+Home")
    caret = one.locator(f".rc [data-name={teo.name}]")
    expect(caret).to_be_visible()
    expect(one.locator(".cm-line .sel").first).to_have_text(re.compile("^one two three"))
    expect(one.locator("#present")).to_contain_text(teo.name)
    expect(one.locator(f".rc [data-name={mira.name}]")).to_have_count(0)  # not oneself
    two.close()
    expect(one.locator("#present")).not_to_contain_text(teo.name)
    expect(caret).to_have_count(0)


@pytest.fixture
def net() -> "Net":
    return Net()


class Net:
    """The line between a tab and the live socket, which a test can cut and mend, and on which it can answer itself."""

    def __init__(self) -> None:
        self.is_down = False
        self.refusal: dict[str, str] | None = None  # the answer to the next edit, which then never reaches the server
        self.refused = 0
        self._lines: list[WebSocketRoute] = []

    def watch(self, page: Page) -> None:
        page.route_web_socket(re.compile("/live/$"), self._connected)

    def cut(self) -> None:
        self.is_down = True
        for line in self._lines:
            line.close()
        self._lines.clear()

    def mend(self) -> None:
        self.is_down = False

    def _connected(self, line: WebSocketRoute) -> None:
        if self.is_down:
            line.close()
            return
        server = line.connect_to_server()
        line.on_message(lambda said: self._said(line, server, said))
        self._lines.append(line)

    def _said(self, line: WebSocketRoute, server: WebSocketRoute, said: str | bytes) -> None:
        frame = json.loads(said)
        if frame["op"] != "edit" or self.refusal is None:
            server.send(said)
            return
        answer = {"type": "refused", "document": frame["document"], "request_id": frame["request_id"], "revision": 0}
        line.send(json.dumps(answer | {"error": self.refusal}))
        self.refusal = None
        self.refused += 1


def test_not_now_is_tried_again_unchanged(tabs: Tabs, mira: Who, document: Document, net: Net) -> None:
    page = tabs.open(mira)
    net.watch(page)
    open_document(page, document)
    net.refusal = {"code": "unavailable", "message": "Not now."}
    put_cursor(page, 5)
    page.keyboard.insert_text("!")
    saved(page, 1)
    assert net.refused == 1
    assert recorded(document)[0] == TEXT.replace("last line", "last line!")


def test_a_refusal_that_nothing_cures_is_said_and_the_text_stays(
    tabs: Tabs, mira: Who, document: Document, net: Net
) -> None:
    page = tabs.open(mira)
    net.watch(page)
    open_document(page, document)
    net.refusal = {"code": "document_too_long", "message": "The document would be too long."}
    put_cursor(page, 5)
    page.keyboard.insert_text("!")
    expect(page.locator("#saved")).to_have_text("1 edit not saved")
    expect(page.locator(".toasts")).to_contain_text("were not saved: The document would be too long.")
    page.keyboard.insert_text("?")
    assert text_of(page) == TEXT.replace("last line", "last line!?")
    assert recorded(document) == (TEXT, 0)


def test_what_is_typed_offline_is_kept_and_saved_later(
    tabs: Tabs, mira: Who, wren: Who, document: Document, net: Net
) -> None:
    page = tabs.open(mira)
    net.watch(page)
    open_document(page, document)
    put_cursor(page, 5)
    page.keyboard.insert_text(" before")
    saved(page, 1)
    net.cut()
    page.keyboard.insert_text(" while offline")
    edit_document(who=wren, document=document.pk, edits=[Edit("# Plan", "# The plan")])
    expect(page.locator("#saved")).to_have_text("1 edit not saved")
    expect(page.locator(".conn")).to_contain_text(re.compile(r"Offline since \d\d:\d\d\..* not saved yet"))
    assert recorded(document)[0] == TEXT.replace("last line", "last line before").replace("# Plan", "# The plan")
    net.mend()
    page.evaluate("dispatchEvent(new Event('online'))")
    saved(page, 3)
    expect(page.locator(".conn")).to_be_hidden()
    wanted = TEXT.replace("last line", "last line before while offline").replace("# Plan", "# The plan")
    assert recorded(document)[0] == text_of(page) == wanted


def test_a_mebibyte_is_pasted_whole(tabs: Tabs, mira: Who, teo: Who, document: Document) -> None:
    one, two = open_document(tabs.open(mira), document), open_document(tabs.open(teo), document)
    put_cursor(one, 5)
    one.evaluate(
        """(length) => {
          const data = new DataTransfer()
          data.setData("text/plain", "0123456789abcde\\n".repeat(length / 16))
          const pasted = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
          document.querySelector(".cm-content").dispatchEvent(pasted)
        }""",
        MEBIBYTE,
    )
    saved(one, 1)
    saved(two, 1)
    wanted = TEXT.replace("last line", "last line" + "0123456789abcde\n" * (MEBIBYTE // 16))
    assert recorded(document)[0] == wanted
    assert text_of(two) == wanted


def test_carriage_returns_survive_and_invalid_characters_do_not(tabs: Tabs, mira: Who, document: Document) -> None:
    page = open_document(tabs.open(mira), document)
    put_cursor(page, 5)
    page.keyboard.insert_text("a\0b\ud83d!".encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    saved(page, 1)
    text, _ = recorded(document)
    assert text == TEXT.replace("last line", "last linea\ufffdb\ufffd!")
    assert "three\r\n" in text


def test_an_emptied_document_holds_a_line_break(tabs: Tabs, mira: Who, document: Document) -> None:
    page = open_document(tabs.open(mira), document)
    put_cursor(page, 5)
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    saved(page, 1)
    assert recorded(document)[0] == text_of(page) == "\n"
    page.keyboard.press("Control+z")
    saved(page, 2)
    assert recorded(document)[0] == TEXT


def test_history_shows_differences_and_brings_a_text_back(tabs: Tabs, mira: Who, wren: Who, document: Document) -> None:
    edit_document(who=wren, document=document.pk, edits=[Edit("one two three", "one 2 three")])
    edit_document(who=wren, document=document.pk, edits=[Edit("last line\n", "")])
    page = open_document(tabs.open(mira), document)
    page.get_by_role("button", name="History").click()
    expect(page.locator("#diff .hunk").first).to_have_text("Revision 2 against 2: the same text")
    page.locator("#revision").fill("1")
    expect(page.locator("#diff .hunk").first).to_have_text("Revision 1 against 2: 1 line changed")
    expect(page.locator("#diff .del .c")).to_have_text("last line")
    expect(page.locator("#revision-who")).to_contain_text("wren")
    page.locator("#against").select_option("before")
    expect(page.locator("#diff del")).to_have_text("two")
    expect(page.locator("#diff ins")).to_have_text("2")
    page.locator("#revision").fill("0")
    page.get_by_role("button", name="Restore 0").click()
    saved(page, 3)
    assert recorded(document)[0] == text_of(page) == TEXT
    page.keyboard.press("Control+z")
    saved(page, 4)
    assert recorded(document)[0] == TEXT.replace("two", "2").replace("last line\n", "")


def test_a_viewer_reads_along_and_cannot_write(tabs: Tabs, wren: Who, root: Root, document: Document) -> None:
    ana = make_person("ana")
    Membership.objects.create(root=root, actor_id=ana.actor, role=Role.VIEWER, created=now())
    page = open_document(tabs.open(ana), document)
    expect(page.locator("#saved")).to_have_text("Read only, r0")
    page.locator(".cm-line").nth(4).click()
    page.keyboard.type("no")
    edit_document(who=wren, document=document.pk, edits=[Edit("last", "LAST")])
    expect(page.locator("#saved")).to_have_text("Read only, r1")
    assert text_of(page) == recorded(document)[0] == TEXT.replace("last", "LAST")


def test_a_document_grows_to_its_limit_and_no_further(tabs: Tabs, mira: Who, root: Root) -> None:
    document = make_document(mira, root.pk, ("😀" * 63 + "\n") * (2 * MEBIBYTE // 64))
    page = open_document(tabs.open(mira), document)
    page.locator(".cm-content").focus()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("too long")
    expect(page.locator(".toasts")).to_contain_text("longer than 2,097,152 characters")
    saved(page, 0)
    assert recorded(document)[1] == 0


@pytest.mark.parametrize(("scheme", "phone"), [("light", False), ("dark", True)])
def test_it_is_readable_everywhere(
    tabs: Tabs, mira: Who, wren: Who, document: Document, scheme: str, phone: bool
) -> None:
    page = open_document(tabs.open(mira, scheme=scheme, **({"viewport": PHONE} if phone else {})), document)
    edit_document(who=wren, document=document.pk, edits=[Edit("two", "two and a half")])
    expect(page.locator(".un")).to_be_visible()
    expect(page.locator(".unread.flash")).to_have_count(0)
    assert contrast_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="History").click()
    page.locator("#revision").fill("0")
    expect(page.locator("#diff .add")).to_be_visible()
    assert contrast_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

"""Text of agents and transcripts is untrusted (S3): whatever it says, the page stays ours."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.markdown import HIGHLIGHTED_CHARACTERS, highlighted, rendered

TAGS = {
    *("a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "span"),
    *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
ATTRIBUTES = {"class", "href", "rel", "target", "title", "start"}


class _Reader(HTMLParser):
    """What a browser would make of it: every tag with its attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def _check_harmless(html: str) -> None:
    for tag, attributes in _Reader(html).found:
        assert tag in TAGS
        assert set(attributes) <= ATTRIBUTES
        href = attributes.get("href")
        if href is not None and not href.startswith("/conversations/"):
            assert href.lower().startswith(("http://", "https://", "mailto:"))
            assert attributes["rel"] == "noopener nofollow ugc"
            assert attributes["class"] == "outside"


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)' onclick=alert(1)>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "[x](//evil.example/)",
    "[x](/signout/)",
    "[x](/conversations/1/?at=1#e1)",
    '[x](https://e.example/" onmouseover="alert(1))',
    "![x](javascript:alert(1))",
    "![x](https://e.example/beacon.png)",
    "<javascript:alert(1)>",
    "<https://e.example/<script>>",
    '```" onclick="alert(1)\nx\n```',
    "```html\n<script>alert(1)</script>\n```",
    "<!-- --><svg/onload=alert(1)>",
    "<style>*{display:none}</style><form action=//e.example><input name=x></form>",
    "# <iframe srcdoc='<script>alert(1)</script>'>",
    "| <b onclick=x> |\n|--|\n| [x](javascript:x) |",
    "#1/2<img src=x onerror=alert(1)>",
    "\x00<scr\x00ipt>alert(1)</scr\x00ipt>",
]


@pytest.mark.parametrize("text", ATTACKS)
def test_attacks_become_text(text: str) -> None:
    _check_harmless(rendered(text))


@given(st.lists(st.sampled_from([*ATTACKS, "[", "]", "(", ")", "`", "*", "> ", "- ", "\n", "<", ">", "#9/9", "a"])))
def test_no_mixture_of_attacks_gets_through(parts: list[str]) -> None:
    _check_harmless(rendered("".join(parts)))


def test_raw_html_is_shown_as_it_was_written() -> None:
    assert _Reader(rendered("<b>bold</b>")).text.strip() == "<b>bold</b>"


def test_outside_links_are_marked() -> None:
    assert rendered("[x](https://e.example/a)") == (
        '<p><a href="https://e.example/a" class="outside" rel="noopener nofollow ugc" target="_blank">x</a></p>\n'
    )
    assert 'href="http://bare.example"' in rendered("see http://bare.example, please")
    assert "href" not in rendered("see manage.py and www.e.example and //e.example/x")


def test_relative_links_stay_text() -> None:
    assert rendered("[the page](docs/a.md)") == '<p><span title="docs/a.md">the page</span></p>\n'


def test_pictures_are_never_fetched() -> None:
    html = rendered("![a chart](https://e.example/c.png)")
    assert "<img" not in html
    assert 'href="https://e.example/c.png"' in html
    assert "[image: a chart]" in html


def test_entry_numbers_lead_to_their_entry() -> None:
    assert rendered("as of #12/345.") == (
        '<p>as of <a href="/conversations/12/?at=345#e345" class="eid">#12/345</a>.</p>\n'
    )
    for text in ("`#12/345`", "x#12/345", "#12/345/6", "a/#12/345x", "    #12/345"):
        assert "href" not in rendered(text)
    assert rendered("[#12/345](https://e.example)").count("href") == 1


def test_headings_leave_the_first_two_levels_to_the_page() -> None:
    assert rendered("# a") == "<h3>a</h3>\n"
    assert rendered("###### a") == "<h6>a</h6>\n"


@pytest.mark.parametrize("text", ["> " * 20_000 + "x", "[" * 20_000, "- " * 10_000, "*a " * 7_000, "`" * 20_000])
@pytest.mark.timeout(10)
def test_huge_nesting_is_bounded(text: str) -> None:
    html = rendered(text)
    _check_harmless(html)
    assert html.count("<blockquote>") <= 20


def test_code_is_highlighted_by_classes_only() -> None:
    html = rendered("```python\ndef f(): return '<b>'\n```")
    assert '<span class="hl-k">def</span>' in html
    assert "style=" not in html
    assert "&lt;b&gt;" in html


def test_long_or_unknown_code_is_only_escaped() -> None:
    assert highlighted("<b>", "no-such-language") == "&lt;b&gt;"
    assert "<span" in highlighted("x = 1\n" * 10, "python")
    assert "<span" not in highlighted("x = 1\n" * (HIGHLIGHTED_CHARACTERS // 6 + 1), "python")

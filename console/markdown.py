"""Text from outside as safe HTML: Markdown without raw HTML, highlighted code, sanitised once more at the end (S3).

Links to elsewhere are marked for the eye and for machines; relative links lead nowhere from here and stay text;
pictures are not fetched from elsewhere and become links; `#12/345` leads to that entry.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight as pygmentize
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

# Pygments needs about 1 s for 200 kB of the slowest lexers; a block of this size takes some 50 ms.
HIGHLIGHTED_CHARACTERS = 16_384
# The cache is for live pages: every watcher gets the same new entry.
CACHED_TEXTS = 512

_PREFIX = "hl-"
_REL = "noopener nofollow ugc"
_OUTSIDE = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_ENTRY = re.compile(r"(?<![\w/#])#(\d{1,18})/(\d{1,9})(?![\w/])")
_ENTRY_HREF = re.compile(r"/conversations/\d+/\?at=\d+#e\d+")


def entry_url(conversation: int, seq: int) -> str:
    """Where an entry can be read: a page that holds it, scrolled to it."""
    return f"/conversations/{conversation}/?at={seq}#e{seq}"


@lru_cache(maxsize=CACHED_TEXTS)
def rendered(text: str) -> SafeString:
    """Markdown as sanitised HTML, without an enclosing element. The caller bounds the length of `text`."""
    return SafeString(_clean(_MARKDOWN.render(text)))  # sanitised in the same breath


def highlighted(code: str, language: str) -> SafeString:
    """Code with Pygments classes, or only escaped where the language is unknown or the code long."""
    if language and len(code) <= HIGHLIGHTED_CHARACTERS:
        try:
            lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
        except (ClassNotFound, ValueError):
            pass
        else:
            return SafeString(pygmentize(code, lexer, _FORMATTER))  # Pygments escapes
    return escape(code)


def _highlight_fence(code: str, language: str, attributes: str) -> str:
    return highlighted(code, language)


def _heading_open(self: RendererHTML, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType) -> str:
    # The page has its own h1 and h2.
    tokens[i].tag = f"h{min(int(tokens[i].tag[1]) + 2, 6)}"
    return self.renderToken(tokens, i, options, env)


def _link_open(self: RendererHTML, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[i]
    href = str(token.attrGet("href") or "")
    if token.meta.get("entry"):
        token.attrSet("class", "eid")
    elif _OUTSIDE.match(href):
        token.attrSet("class", "outside")
        token.attrSet("rel", _REL)
        token.attrSet("target", "_blank")
    else:
        return f'<span title="{escape(href)}">'
    return self.renderToken(tokens, i, options, env)


def _link_close(self: RendererHTML, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType) -> str:
    opened = _opening(tokens, i)
    href = str(opened.attrGet("href") or "")
    return "</a>" if opened.meta.get("entry") or _OUTSIDE.match(href) else "</span>"


def _opening(tokens: Sequence[Token], i: int) -> Token:
    """Links do not nest, so the nearest opening is this one's."""
    return next(tokens[j] for j in range(i - 1, -1, -1) if tokens[j].type == "link_open")


def _image(self: RendererHTML, tokens: Sequence[Token], i: int, options: OptionsDict, env: EnvType) -> str:
    source = str(tokens[i].attrGet("src") or "")
    name = escape(tokens[i].content or source)
    if not re.match("https?://", source, re.IGNORECASE):
        return f'<span title="{escape(source)}">[image: {name}]</span>'
    return f'<a class="outside" rel="{_REL}" target="_blank" href="{escape(source)}">[image: {name}]</a>'


def _link_entries(state: StateCore) -> None:
    """`#12/345` in running text becomes a link; not in code, not inside another link."""
    for block in state.tokens:
        if block.type != "inline" or not block.children or "#" not in block.content:
            continue
        children: list[Token] = []
        depth = 0
        for token in block.children:
            depth += token.nesting if token.type in {"link_open", "link_close"} else 0
            children += _with_links(token) if token.type == "text" and depth == 0 else [token]
        block.children = children


def _with_links(token: Token) -> list[Token]:
    found: list[Token] = []
    done = 0
    for match in _ENTRY.finditer(token.content):
        href = entry_url(int(match[1]), int(match[2]))
        found.append(Token("text", "", 0, content=token.content[done : match.start()]))
        found.append(Token("link_open", "a", 1, attrs={"href": href}, meta={"entry": True}))
        found.append(Token("text", "", 0, content=match[0]))
        found.append(Token("link_close", "a", -1))
        done = match.end()
    return [*found, Token("text", "", 0, content=token.content[done:])] if found else [token]


def _made() -> MarkdownIt:
    # html=False: raw HTML is text. maxNesting bounds quotes in quotes in quotes.
    made = MarkdownIt("commonmark", {"html": False, "linkify": True, "highlight": _highlight_fence, "maxNesting": 20})
    made.enable(["table", "strikethrough", "linkify"])
    # Only what spells its scheme is a link: agents write file names that look like hosts (`manage.py`).
    assert made.linkify is not None
    made.linkify.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})
    made.linkify.add("ftp:", None).add("//", None)
    made.core.ruler.push("entries", _link_entries)
    for name, rule in {
        "heading_open": _heading_open,
        "heading_close": _heading_open,
        "link_open": _link_open,
        "link_close": _link_close,
        "image": _image,
    }.items():
        made.add_render_rule(name, rule)
    return made


_TAGS = {
    *("a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "span"),
    *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_CLASSES = {
    "a": {"outside", "eid"},
    "span": {_PREFIX + name for name in STANDARD_TYPES.values() if name},
}
_ATTRIBUTES = {"a": {"href", "rel", "target", "title"}, "ol": {"start"}, "span": {"title"}}


def _attribute(tag: str, attribute: str, value: str) -> str | None:
    if tag == "a" and attribute == "href" and not (_OUTSIDE.match(value) or _ENTRY_HREF.fullmatch(value)):
        return None
    return value


def _clean(html: str) -> str:
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        allowed_classes=_CLASSES,
        attribute_filter=_attribute,
        link_rel=None,  # set by the renderer, only on what leads elsewhere
        url_schemes={"http", "https", "mailto"},
    )


_FORMATTER: HtmlFormatter[Any] = HtmlFormatter(nowrap=True, classprefix=_PREFIX)
_MARKDOWN = _made()

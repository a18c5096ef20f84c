"""What base.html needs on every page: the reader's scheme and panes, who reads, how many things need them."""

from dataclasses import dataclass

from django.http import HttpRequest

from console.access import who_is_user
from console.board.queries import needing
from console.models import User
from console.shown import hue
from lineage.agent.provider import model_for
from lineage.approvals import waiting_approvals

# Widths of a pane in px; the steps are the rules in base.css (an inline width is refused by the CSP).
WIDTH_LEAST, WIDTH_MOST, WIDTH_STEP = 208, 480, 16
LEFT_WIDTH, RIGHT_WIDTH = 272, 288


@dataclass(frozen=True, kw_only=True)
class Me:
    """The signed-in reader as the header shows them."""

    name: str
    hue: int


@dataclass(frozen=True, kw_only=True)
class Frame:
    scheme: str  # "light", "dark" or "" for the system's
    left: int
    right: int
    fold_left: bool
    fold_right: bool
    me: Me | None
    need: int  # what waits for the reader's decision or answer
    need_url: str  # the queue of approvals while any waits, else the board's list of questions and failures
    no_model: bool  # none is configured: said wherever one would be used
    tab: str  # of the bottom bar: board, tree or need


def frame(request: HttpRequest) -> dict[str, Frame]:
    """The context processor of base.html."""
    return {"frame": frame_of(request)}


def frame_of(request: HttpRequest) -> Frame:
    """Cookies are the reader's own wishes, so a value that is none of ours counts as no wish."""
    wished = _wishes(request.COOKIES.get("panes", ""))
    scheme = request.COOKIES.get("scheme", "")
    user = getattr(request, "user", None)
    who = who_is_user(user) if isinstance(user, User) else None
    need = needing(who) if who is not None else 0
    return Frame(
        scheme=scheme if scheme in {"light", "dark"} else "",
        left=_width(wished.get("left"), LEFT_WIDTH),
        right=_width(wished.get("right"), RIGHT_WIDTH),
        fold_left="fold-left" in wished,
        fold_right="fold-right" in wished,
        me=Me(name=who.name, hue=hue(who.actor)) if who is not None else None,
        need=need,
        need_url="/approvals/" if who is not None and need and waiting_approvals(who).exists() else "/#needs",
        no_model=model_for("") is None,
        tab={"/": "board", "/approvals/": "need"}.get(request.path, ""),
    )


def _wishes(cookie: str) -> dict[str, str]:
    """`left=288.fold-right` as a mapping; the marks are those that a cookie may hold unquoted."""
    return {key: value for key, _, value in (part.partition("=") for part in cookie.split("."))}


def _width(said: str | None, otherwise: int) -> int:
    if said is None or not (said.isascii() and said.isdecimal()) or len(said) > 4:
        return otherwise
    width = min(max(int(said), WIDTH_LEAST), WIDTH_MOST)
    return WIDTH_LEAST + (width - WIDTH_LEAST) // WIDTH_STEP * WIDTH_STEP

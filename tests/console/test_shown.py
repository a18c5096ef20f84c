"""How numbers and times are written."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import RequestFactory

from console.pages.frame import WIDTH_LEAST, WIDTH_MOST, frame_of
from console.shown import AUTHOR_HUES, age, brief, exact, hue, money, size, thin


@pytest.mark.parametrize(
    ("number", "said"),
    [
        *((0, "0"), (999, "999"), (1000, "1.0 k"), (4_100, "4.1 k"), (99_949, "99.9 k"), (212_000, "212 k")),
        *((999_499, "999 k"), (999_500, "1.0 M"), (318_000_000, "318 M"), (2_500_000_000, "2.5 G")),
    ],
)
def test_brief(number: int, said: str) -> None:
    assert brief(number).replace("\u202f", " ") == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(-5, "0 s"), (59, "59 s"), (60, "1 m"), (3599, "59 m"), (3600, "1 h"), (86400 * 18, "18 d")]
)
def test_age(seconds: int, said: str) -> None:
    assert age(timedelta(seconds=seconds)).replace("\u202f", " ") == said


def test_the_others() -> None:
    assert thin(1234567) == "1\u202f234\u202f567"
    assert size(950) == "950\u202fB"
    assert size(210_330) == "205.4\u202fKiB"
    assert money(None) == "unknown"
    assert money(18_420_000) == "$\u202f18.42"
    assert exact(datetime(2026, 11, 3, 9, 5, 7, tzinfo=UTC)) == "3 Nov 2026, 09:05:07 UTC"


def test_neighbours_get_distant_colours() -> None:
    assert sorted(hue(n) for n in range(1, 13)) == list(range(1, AUTHOR_HUES + 1))
    assert all(min((hue(n) - hue(n + 1)) % 12, (hue(n + 1) - hue(n)) % 12) >= 4 for n in range(1, 40))
    assert hue(None) == 0


@pytest.mark.parametrize(
    ("cookie", "left", "folded"),
    [
        ("", 272, False),
        ("left=304.fold-left", 304, True),
        ("left=305", 304, False),
        ("left=9999", WIDTH_MOST, False),
        ("left=1", WIDTH_LEAST, False),
        ("left=<script>.fold-left=x", 272, True),
        ("left=٣٠٠", 272, False),
    ],
)
def test_wishes_are_read_from_the_cookie(cookie: str, left: int, folded: bool) -> None:
    request = RequestFactory().get("/")
    request.COOKIES = {"panes": cookie, "scheme": "purple"}
    frame = frame_of(request)
    assert (frame.left, frame.fold_left, frame.scheme) == (left, folded, "")

"""The board as its page shows it: what needs a person, rows of roots, sparklines; only what one may see (C1, R9)."""

import re

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from console.access import Who
from console.board.keeping import fold_touched
from console.models import Role
from console.pages.board_rows import DOTS, bars_of
from lineage.actions.entries import lock_conversation
from lineage.actions.members import set_member
from lineage.actions.states import set_state
from lineage.models import State
from tests.console.pages.conftest import Reader
from tests.factories import make_person, make_root, make_session, say

pytestmark = pytest.mark.django_db


def _fold() -> None:
    while fold_touched():
        pass


def _wait(conversation: int, state: State, why: str) -> None:
    with transaction.atomic():
        set_state(conversation=lock_conversation(conversation), state=state, why=why)


@pytest.fixture
def mira() -> Who:
    return make_person("mira")


def test_the_first_start_teaches_the_commands(reader: Reader, mira: Who) -> None:
    page = reader(mira).get("/").content.decode()
    for command in ("manage.py watch", "manage.py token", "manage.py up --demo", "manage.py signin teo --create"):
        assert command in page
    assert "http://localhost/mcp" in page


def test_a_root_is_a_row_with_its_last_line(reader: Reader, mira: Who) -> None:
    root = make_root(mira, "Checkout service")
    session = make_session(root, "wren").pk
    say(mira, session, "begin", "the schedule is capped", end=False)
    _fold()
    page = reader(mira).get("/").content.decode()
    row = re.search(rf'<tr id="root-{root.pk}".*?</tr>', page, re.DOTALL)
    assert row is not None
    assert "the schedule is capped" in row[0]
    assert 'aria-label="running"' in row[0]
    assert re.search(r'aria-label="\d entries in the last 24 hours"', row[0])
    assert row[0].count("<rect") == 24


def test_what_waits_is_on_top_the_oldest_first(reader: Reader, mira: Who) -> None:
    root = make_root(mira)
    first, second = make_session(root, "first").pk, make_session(root, "second").pk
    _wait(second, State.FAILED, "The model <did> not answer")
    _wait(first, State.ANSWER, "Which tax?")
    _fold()
    answer = reader(mira).get("/")
    page = answer.content.decode()
    assert page.index(f'id="need-{second}"') < page.index(f'id="need-{first}"')
    assert "The model &lt;did&gt; not answer" in page
    assert "2, oldest first" in page
    assert (answer.context["frame"].need, answer.context["frame"].need_url) == (2, "/#needs")
    assert "2<span" in page


def test_nobody_sees_another_teams_board(reader: Reader, mira: Who) -> None:
    teo, rui = make_person("teo"), make_person("rui")
    root, other = make_root(mira, "Checkout"), make_root(teo, "Payroll secrets")
    set_member(who=mira, root=root.pk, actor=rui.actor, role=Role.VIEWER)
    for place in (root, other):
        _wait(make_session(place, "wren").pk, State.ANSWER, f"about {place.conversation.title}")
    _fold()
    for who in (mira, rui):
        client = reader(who)
        for path in ("/", f"/board/parts/?changed={root.pk},{other.pk}"):
            page = client.get(path).content.decode()
            assert "about Checkout" in page
            assert "Payroll" not in page
            assert client.get("/").context["frame"].need == 1
    assert "Payroll" in reader(teo).get("/").content.decode()


def test_parts_hold_the_changed_rows_only(reader: Reader, mira: Who) -> None:
    one, two = make_root(mira, "One"), make_root(mira, "Two")
    _fold()
    page = reader(mira).get(f"/board/parts/?changed={two.pk}").content.decode()
    assert f'id="root-{two.pk}"' in page
    assert f'id="root-{one.pk}"' not in page
    for id in ("needs", "feed", "board-totals", "need"):
        assert f'id="{id}"' in page


def test_order_and_pages(reader: Reader, mira: Who) -> None:
    for n in range(55):
        make_root(mira, f"Root {n:02}")
    _fold()
    client = reader(mira)
    page = client.get("/?order=title").content.decode()
    assert re.findall(r"data-open>(Root \d+)<", page) == [f"Root {n:02}" for n in range(50)]
    assert "50 of 55" in page
    rest = client.get("/?order=title&cursor=50").content.decode()
    assert re.findall(r"data-open>(Root \d+)<", rest) == [f"Root {n}" for n in range(50, 55)]


def test_the_wall_has_no_controls(reader: Reader, mira: Who) -> None:
    make_root(mira)
    _fold()
    page = reader(mira).get("/?wall").content.decode()
    assert re.search(r'<html[^>]* class="wall">', page)
    assert "wall-clock" in page


def test_the_cost_does_not_grow_with_the_roots(reader: Reader, mira: Who) -> None:
    make_root(mira)
    _fold()
    client = reader(mira)
    client.get("/")
    with CaptureQueriesContext(connection) as few:
        client.get("/")
    for _ in range(30):
        make_session(make_root(mira), "wren")
    _fold()
    with CaptureQueriesContext(connection) as many:
        client.get("/")
    assert len(many) <= len(few) + 2  # titles are read only where there are lines
    assert len(many) <= 25


def test_bars_stand_against_the_busiest_hour() -> None:
    bars = bars_of([0, 5, 10, 1])
    assert [bar.kind for bar in bars] == ["zero", "", "", "now"]
    assert [bar.height for bar in bars] == [1.5, 10.0, 20.0, 2.0]
    assert all(bar.y + bar.height == 20.0 for bar in bars)
    assert [bar.kind for bar in bars_of([0] * 24)] == ["zero"] * 24
    assert DOTS == 12

"""Reading the board: order, pages, and never another's titles (R9)."""

from datetime import timedelta
from typing import Any

import pytest

from console.access import Who
from console.board.keeping import fold_touched
from console.board.queries import board_page, board_version, feed, needs_you, root_rows, rows_after, tree_size
from console.clock import moved
from console.models import Role
from lineage.actions.members import set_member
from lineage.models import Root, State
from tests.console.board.test_keeping import answer, place, set_to
from tests.factories import make_agent, make_person, make_root, make_session

pytestmark = pytest.mark.django_db


def fold() -> None:
    while fold_touched():
        pass


def titles(who: Who | None, **how: Any) -> list[str]:
    return [row.title for row in board_page(who, **how).rows]


@pytest.fixture
def mira() -> Who:
    return make_person("mira")


def test_by_attention_who_waits_longest_comes_first(mira: Who) -> None:
    made: dict[str, Root] = {}
    for title in ("quiet", "newer", "running", "asks", "failed"):
        made[title] = make_root(mira, title)
    sessions = {title: make_session(root) for title, root in made.items()}
    with moved(timedelta(minutes=-9)):
        set_to(sessions["failed"].pk, State.FAILED)
    set_to(sessions["asks"].pk, State.ANSWER)
    set_to(sessions["running"].pk, State.RUNNING)
    place(sessions["newer"].pk, answer())
    fold()
    assert titles(mira) == ["failed", "asks", "running", "newer", "quiet"]
    assert titles(mira, order="title") == ["asks", "failed", "newer", "quiet", "running"]


def test_pages_follow_each_other(mira: Who) -> None:
    for number in range(5):
        make_root(mira, f"root {number}")
    fold()
    first = board_page(mira, order="title", limit=3)
    assert (len(first.rows), first.total, first.next) == (3, 5, "3")
    second = board_page(mira, order="title", limit=3, cursor=first.next)
    assert ([row.title for row in second.rows], second.next) == (["root 3", "root 4"], None)
    assert titles(mira, order="title", cursor="nonsense")[0] == "root 0"


def test_nobody_sees_what_is_not_theirs(mira: Who) -> None:
    mine, theirs = make_root(mira, "mine"), make_root(title="theirs")
    session = make_session(theirs)
    place(session.pk, answer("secret"))
    set_to(session.pk, State.FAILED, "secret")
    fold()
    admin = make_person("admin", superuser=True)
    token, _ = make_agent(mine)
    for who, expected in ((mira, ["mine"]), (token, ["mine"]), (admin, ["theirs", "mine"]), (None, ["theirs", "mine"])):
        assert titles(who) == expected
        assert [row.title for row in rows_after(who, 0, limit=99)] == sorted(expected)
        sees_all = len(expected) == 2
        assert [need.why for need in needs_you(who)[0]] == (["secret"] if sees_all else [])
        assert [line["text"] for line in feed(who)] == (["secret", "started wren"] if sees_all else [])
        assert board_page(who).total == len(expected)
    set_member(who=None, root=theirs.pk, actor=mira.actor, role=Role.VIEWER)
    assert titles(mira) == ["theirs", "mine"]


def test_rows_after_are_those_that_changed(mira: Who) -> None:
    one, other = make_root(mira, "one"), make_root(mira, "other")
    session = make_session(other)
    fold()
    version = board_version()
    assert rows_after(mira, version, limit=9) == []
    set_to(session.pk, State.RUNNING)
    fold()
    assert [row.title for row in rows_after(mira, version, limit=9)] == ["other"]
    assert [row["conversation"] for row in root_rows(other.pk, after=version)] == [session.pk]
    assert root_rows(one.pk, after=version) == []


def test_the_outline_begins_with_what_is_not_idle(mira: Who) -> None:
    root = make_root(mira)
    sessions = [make_session(root, f"s{n}") for n in range(4)]
    place(sessions[2].pk, answer())
    set_to(sessions[0].pk, State.CHILD, "waits for #9")
    fold()
    rows = root_rows(root.pk)
    assert [row["title"] for row in rows[:2]] == ["s0", "s2"]
    assert (rows[0]["state"], rows[0]["why"], rows[0]["kind"]) == ("child", "waits for #9", "session")
    assert len(root_rows(root.pk, limit=2)) == 2
    assert tree_size(root.pk) == 5


def test_yesterdays_counts_are_not_todays(mira: Who) -> None:
    root = make_root(mira)
    place(make_session(root).pk, answer(cost=500))
    fold()
    assert board_page(mira).rows[0].cost_micros == 500
    with moved(timedelta(hours=25)):
        row = board_page(mira).rows[0]
        assert (row.cost_micros, sum(row.activity)) == (None, 0)


def test_a_page_costs_the_same_queries_however_many_there_are(mira: Who, django_assert_num_queries: Any) -> None:
    for number in range(12):
        session = make_session(make_root(mira, f"root {number}"))
        place(session.pk, answer())
        set_to(session.pk, State.FAILED)
    fold()
    with django_assert_num_queries(3):
        board_page(mira)
    with django_assert_num_queries(2):
        needs_you(mira)
    with django_assert_num_queries(2):
        feed(mira)

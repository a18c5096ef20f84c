"""The streams `team` and `root:ID` over `/live/` (R9, CONTRACT)."""

from typing import Any

import pytest

from console.access import Who
from console.board.keeping import fold_touched, refresh_for_time
from console.board.queries import board_page, root_row, root_rows
from console.board.shapes import root_json
from console.crossing import crossed
from console.live import publishing, rounds
from console.live.hub import hub
from console.models import Role
from lineage.actions.members import set_member
from lineage.models import State
from tests.console.board.test_keeping import set_to
from tests.console.live.conftest import Connect
from tests.console.live.peers import Peer
from tests.console.live.test_signing_in import browser, sign_in
from tests.factories import make_agent, make_root, make_session


def fold() -> None:
    while fold_touched():
        pass


@pytest.fixture
def mira(transactional_db: None) -> tuple[Who, str]:
    _, who, key = sign_in()
    return who, key


async def watch(connect: Connect, key: str) -> tuple[Peer, dict[str, Any]]:
    peer = await connect(None, browser(key))
    snapshot = await peer.subscribe("team")
    await hub().relay.answers.wait()
    return peer, snapshot


async def test_the_team_starts_with_a_page_and_goes_on_with_rows(mira: tuple[Who, str], connect: Connect) -> None:
    who, key = mira
    root = await crossed(make_root, who, "Checkout service")
    session = await crossed(make_session, root)
    await crossed(set_to, session.pk, State.ANSWER, "asks about shipping tax")
    await crossed(fold)
    peer, snapshot = await watch(connect, key)
    state = snapshot["state"]
    assert snapshot["type"] == "snapshot"
    assert [(row["root"], row["title"], row["states"]) for row in state["rows"]] == [
        (root.pk, "Checkout service", {"answer": 1})
    ]
    assert [(need["conversation"], need["why"]) for need in state["needs"]] == [(session.pk, "asks about shipping tax")]
    assert (state["total"], state["next"], state["needing"]) == (1, None, 1)
    assert [line["text"] for line in state["feed"]] == ["started wren"]

    await crossed(set_to, session.pk, State.RUNNING)
    await crossed(fold)
    frame = await peer.hear_type("rows", "team")
    assert frame["version"] > snapshot["seq"]
    assert [(row["root"], row["states"], row["needs"]) for row in frame["rows"]] == [(root.pk, {"running": 1}, [])]


async def test_nobody_hears_of_roots_that_are_not_theirs(mira: tuple[Who, str], connect: Connect) -> None:
    who, key = mira
    mine, theirs = await crossed(make_root, who, "mine"), await crossed(make_root, None, "theirs")
    await crossed(fold)
    peer, snapshot = await watch(connect, key)
    assert [row["title"] for row in snapshot["state"]["rows"]] == ["mine"]
    for root in (theirs, mine):
        await crossed(make_session, root)
    await crossed(fold)
    frame = await peer.hear_type("rows", "team")
    assert [row["title"] for row in frame["rows"]] == ["mine"]
    assert not [frame for frame in peer.heard if "theirs" in str(frame)]


async def test_a_new_membership_brings_the_board_anew(mira: tuple[Who, str], connect: Connect) -> None:
    who, key = mira
    theirs = await crossed(make_root, None, "theirs")
    await crossed(fold)
    peer, snapshot = await watch(connect, key)
    assert snapshot["state"]["rows"] == []
    await crossed(set_member, who=None, root=theirs.pk, actor=who.actor, role=Role.VIEWER)
    snapshot = await peer.hear_type("snapshot", "team")
    assert [row["title"] for row in snapshot["state"]["rows"]] == ["theirs"]
    await crossed(set_member, who=None, root=theirs.pk, actor=who.actor, role=None)
    snapshot = await peer.hear_type("snapshot", "team")
    assert snapshot["state"]["rows"] == []


async def test_tokens_cannot_watch_the_team(mira: tuple[Who, str], connect: Connect) -> None:
    """S2."""
    root = await crossed(make_root, mira[0])
    _, secret = await crossed(make_agent, root)
    peer = await connect(secret)
    frame = await peer.subscribe("team")
    assert (frame["type"], frame["error"]["code"]) == ("error", "forbidden")
    assert (await peer.subscribe(f"root:{root.pk}"))["type"] == "snapshot"


async def test_after_is_answered_with_rows_that_changed(mira: tuple[Who, str], connect: Connect) -> None:
    who, key = mira
    roots = [await crossed(make_root, who, f"root {n}") for n in range(3)]
    await crossed(fold)
    peer, snapshot = await watch(connect, key)
    await crossed(make_session, roots[1])
    await crossed(fold)
    await peer.hear_type("rows", "team")
    await peer.say(op="subscribe", stream="team", after=snapshot["seq"])
    frame = await peer.hear_type("rows", "team")
    assert [row["title"] for row in frame["rows"]] == ["root 1"]
    await peer.say(op="subscribe", stream="team", after=frame["version"])
    assert (await peer.hear_type("rows", "team"))["rows"] == []
    await peer.say(op="subscribe", stream="team", after=frame["version"] + 1)
    assert (await peer.hear())["type"] == "snapshot"


async def test_rows_before_plus_rows_heard_are_the_rows_read_afresh(mira: tuple[Who, str], connect: Connect) -> None:
    """STYLE 24, for both streams."""
    who, key = mira
    roots = [await crossed(make_root, who, f"root {n}") for n in range(2)]
    await crossed(fold)
    peer, snapshot = await watch(connect, key)
    board = {row["root"]: row for row in snapshot["state"]["rows"]}
    opened = await peer.subscribe(f"root:{roots[0].pk}")
    tree = {row["conversation"]: row for row in opened["state"]["rows"]}
    own = opened["state"]["root"]
    for number in range(6):
        session = await crossed(make_session, roots[number % 2], f"s{number}")
        await crossed(set_to, session.pk, State.FAILED if number % 3 else State.RUNNING, f"why {number}")
        await crossed(fold)

    def afresh() -> tuple[Any, Any, Any]:
        row = root_row(roots[0].pk)
        assert row is not None
        shapes = {shape["conversation"]: shape for shape in root_rows(roots[0].pk)}
        return {row.root: root_json(row) for row in board_page(who).rows}, shapes, root_json(row)

    wanted = await crossed(afresh)
    while (board, tree, own) != wanted:
        frame = await peer.hear_type("rows")
        for row in frame["rows"]:
            if frame["stream"] == "team":
                assert row["version"] > board[row["root"]]["version"]
                board[row["root"]] = row
            elif row["row"] == "conversation":
                tree[row["conversation"]] = row
            else:
                own = row


async def test_a_lost_change_of_the_board_is_found_by_comparing(
    mira: tuple[Who, str], connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "COMPARE_S", 0.5)
    who, key = mira
    root = await crossed(make_root, who, "mine")
    await crossed(fold)
    peer, _ = await watch(connect, key)
    await peer.subscribe(f"root:{root.pk}")
    monkeypatch.setattr(publishing, "publish", lambda stream, event: None)
    session = await crossed(make_session, root)
    await crossed(fold)
    assert (await peer.hear_type("rows", "team"))["rows"][0]["states"] == {"idle": 1}
    rows = (await peer.hear_type("rows", f"root:{root.pk}"))["rows"]
    assert session.pk in [row.get("conversation") for row in rows]


async def test_a_heartbeat_is_no_gap_where_nothing_was_for_one(
    mira: tuple[Who, str], connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "HEARTBEAT_S", 0.05)
    who, key = mira
    await crossed(make_root, who, "mine")
    await crossed(fold)
    peer, snapshot = await watch(connect, key)
    await crossed(make_root, None, "theirs")
    await crossed(fold)
    version = snapshot["seq"]
    while True:
        frame = await peer.hear()
        if frame["type"] == "rows":
            assert frame["rows"] == []
            version = frame["version"]
        elif frame["type"] == "heads":
            assert frame["heads"]["team"] <= version
            if version > snapshot["seq"]:
                break


async def test_the_clock_alone_changes_rows(mira: tuple[Who, str], connect: Connect) -> None:
    from datetime import timedelta

    from console.clock import moved

    who, key = mira
    root = await crossed(make_root, who, "mine")
    await crossed(make_session, root)
    await crossed(fold)
    peer, _ = await watch(connect, key)
    with moved(timedelta(hours=2)):
        await crossed(refresh_for_time)
        frame = await peer.hear_type("rows", "team")
    assert frame["rows"][0]["activity"][-3:] == [1, 0, 0]

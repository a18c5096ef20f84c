"""The page of a root and its outline (C1, S2)."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.models import Role
from lineage.actions.abstracts import write_abstract
from lineage.actions.branches import start_branch
from lineage.actions.landings import NewLanding, record_landing
from lineage.actions.members import set_member
from lineage.actions.notes import leave_note
from lineage.actions.notify import request_notify
from lineage.models import Conversation, State
from lineage.state import conversation_state
from lineage.trees import IDLE_SHOWN, OUTLINE_ROWS, outline
from tests.console.pages.conftest import Reader
from tests.factories import make_person, make_root, make_session, say
from tests.lineage.working import work

pytestmark = pytest.mark.django_db


def test_an_empty_root_teaches(reader: Reader) -> None:
    mira = make_person()
    root = make_root(mira)
    page = reader(mira).get(f"/roots/{root.pk}/").content.decode()
    assert f"manage.py import ~/.claude/projects --root {root.pk}" in page
    assert f"manage.py token NAME --root {root.pk}" in page


def test_sessions_are_listed_with_their_state(reader: Reader) -> None:
    mira = make_person()
    root = make_root(mira, folder="/src/checkout")
    session = make_session(root, "wren")
    say(mira, session.pk, "begin", "yes", end=False)
    page = reader(mira).get(f"/roots/{root.pk}/").content.decode()
    assert f'href="/conversations/{session.pk}/"' in page
    assert 'aria-label="running"' in page
    assert "/src/checkout" in page


def test_viewers_read_and_get_no_forms(reader: Reader) -> None:
    mira, rui, stranger = make_person("mira"), make_person("rui"), make_person("eve")
    root = make_root(mira)
    set_member(who=mira, root=root.pk, actor=rui.actor, role=Role.VIEWER)
    assert "Start a branch" in reader(mira).get(f"/roots/{root.pk}/").content.decode()
    assert "Start a branch" not in reader(rui).get(f"/roots/{root.pk}/").content.decode()
    for path in ("", "lines/", "parts/"):
        assert reader(stranger).get(f"/roots/{root.pk}/{path}").status_code == 404


def test_the_outline_folds_idle_ones_and_keeps_the_way_to_the_page() -> None:
    root = make_root()
    sessions = [make_session(root, f"session {n}") for n in range(IDLE_SHOWN + 5)]
    busy = sessions[0]
    Conversation.objects.filter(pk=busy.pk).update(state=State.RUNNING)
    current = sessions[1]
    shape = outline(root, current.pk)
    shown = [node.id for node in shape.root.shown]
    assert shown[0] == busy.pk
    assert current.pk in shown
    assert len(shape.root.folded) == 3
    assert (shape.total, shape.active) == (IDLE_SHOWN + 6, 1)
    assert current.pk not in [node.id for node in outline(root).root.shown]


def test_the_outline_of_a_large_tree_is_bounded_and_says_so(reader: Reader) -> None:
    mira = make_person()
    root = make_root(mira)
    like = make_session(root, "first")
    many = OUTLINE_ROWS + 50
    client = reader(mira)
    client.get(f"/roots/{root.pk}/")
    with CaptureQueriesContext(connection) as few:
        client.get(f"/roots/{root.pk}/")
    Conversation.objects.bulk_create(
        Conversation(
            kind=like.kind,
            root=root,
            title=f"session {n}",
            state_since=like.state_since,
            created=like.created,
            touched=like.touched,
        )
        for n in range(many)
    )
    with CaptureQueriesContext(connection) as queries:
        page = client.get(f"/roots/{root.pk}/").content.decode()
    assert len(queries) == len(few)
    assert len(queries) <= 35
    assert (
        f"The newest {OUTLINE_ROWS} of {many + 2} are listed" in page
    )  # the root's own newest entry is the session's line
    old = outline(root, like.pk)
    assert like.pk in [node.id for node in old.root.shown]


def test_odd_lists_are_refused(reader: Reader) -> None:
    mira = make_person()
    root = make_root(mira)
    for query in ("changed=1,x", "changed=" + ",".join(["1"] * 201), "after=x"):
        answer = reader(mira).get(f"/roots/{root.pk}/parts/?{query}", headers={"X-Part": "1"})
        assert answer.status_code == 422
    assert reader(mira).get(f"/roots/{root.pk}/parts/?changed=1,2&after=0").status_code == 200


def test_the_tally_shows_branches_abstracts_landings_and_notes(reader: Reader) -> None:
    """Through the actions, so that the shapes of their data are those that the page reads."""
    mira = make_person()
    root = make_root(mira)
    first = start_branch(who=mira, source=root.pk, prompt="Capture twice, charge once")
    second = start_branch(who=mira, source=first, prompt="Try the queue's own retry")
    write_abstract(who=mira, conversation=first, text="The **second** capture answers with the first.")
    record_landing(
        who=mira,
        conversation=first,
        new=NewLanding(
            at=Conversation.objects.get(pk=first).head,
            sha="a41c9e2b77aa",
            base="b" * 40,
            target="main",
            commits=[{"sha": "c" * 40, "subject": "Key captures by order"}],
            commit_count=3,
            paths=["payments/capture.py"],
            divergence="the key lives in a table of its own",
            title="Capture",
        ),
    )
    write_abstract(who=mira, conversation=second, text="It loses its order.")
    leave_note(who=mira, to=root.pk, text="No deploys on Thursday.")
    client = reader(mira)
    page = client.get(f"/roots/{root.pk}/").content.decode()
    assert "Its abstract was frozen into a landing." in page
    assert 'Landed <span class="mono">a41c9e2</span>' in page
    assert "Key captures by order" in page
    assert "and 2 more" in page
    assert "the key lives in a table of its own" in page
    assert "The <strong>second</strong> capture answers with the first." in page
    assert "It loses its order." in page
    assert "No deploys on Thursday." in page
    assert len(re.findall(r'class="t t-branch[^"]*"', page)) == 2
    since = max(int(seq) for seq in re.findall(r'<li class="t[^>]* data-seq="(\d+)"', page))
    parts = client.get(f"/roots/{root.pk}/parts/?after={since}&changed={second}").content.decode()
    assert "It loses its order." in parts
    assert "Key captures" not in parts


def test_who_waits_for_whom(reader: Reader) -> None:
    """L22: on both lines of the tally and in the facts of both conversations, until it is told."""
    mira = make_person()
    root = make_root(mira)
    target, caller = (start_branch(who=mira, source=root.pk, prompt=prompt) for prompt in ("Round.", "Then ship."))
    work()
    client = reader(mira)

    def line(pk: int) -> str:
        page = client.get(f"/roots/{root.pk}/parts/?changed={target},{caller}").content.decode()
        (found,) = re.findall(
            rf'<li class="t t-branch[^>]*>(?:(?!</li>).)*href="/conversations/{pk}/" data-open.*?</p>', page, re.S
        )
        return re.sub(r"<[^>]+>", "", found)

    def facts(pk: int) -> str:
        return re.sub(r"<[^>]+>", " ", client.get(f"/conversations/{pk}/parts/").content.decode())

    say(mira, target, "Go on.", end=False)
    request_notify(who=mira, caller=caller, target=target, wake=False)
    work()
    assert f"waits for #{target}" in line(caller)
    assert f"awaited by #{caller}" in line(target)
    assert re.search(rf"Waits for\s+#{target}", facts(caller))
    assert re.search(rf"Awaited by\s+#{caller}", facts(target))
    assert conversation_state(Conversation.objects.get(pk=caller))["waits"] == [target]
    say(mira, target, "And on.", "Done.")
    work()
    assert "waits for" not in line(caller)
    assert "awaited" not in line(target)
    assert conversation_state(Conversation.objects.get(pk=caller))["waits"] == []

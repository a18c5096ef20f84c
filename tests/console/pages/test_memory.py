"""The page of a root's memory (L25-L27)."""

import pytest

from console.models import Role
from lineage.actions.landings import NewLanding, record_landing
from lineage.actions.members import set_member
from lineage.actions.memory import apply_memory_ops
from lineage.memories import memory_json
from lineage.models import Memory, MemoryProposal
from lineage.models.memory import LINE_LENGTH
from lineage.tasks.working import run_due
from tests.console.pages.conftest import Reader
from tests.factories import make_person, make_root, make_session

pytestmark = pytest.mark.django_db
FIELDS = {"op": "add", "slug": "retries-end", "kind": "decision", "line": "Retries end", "body": "a\r\nb", "source": ""}


def test_an_empty_memory_teaches(reader: Reader) -> None:
    mira = make_person()
    root = make_root(mira)
    page = reader(mira).get(f"/roots/{root.pk}/memory/").content.decode()
    assert f"--root {root.pk} --main" in page


def test_adding_changing_and_deleting(reader: Reader) -> None:
    mira = make_person()
    root = make_root(mira)
    client, here = reader(mira), f"/roots/{root.pk}/memory/"
    answer = client.post(f"{here}changes/", FIELDS)
    assert answer["Location"] == f"{here}?slug=retries-end#one"
    assert memory_json(root, "retries-end")["body"] == "a\nb"
    page = client.get(f"{here}?slug=retries-end").content.decode()
    assert 'aria-current="true"' in page
    assert "1 of 400" in page
    client.post(f"{here}changes/", FIELDS | {"op": "update", "line": "Retries end with <the> cart"})
    page = client.get(f"{here}?slug=retries-end").content.decode()
    assert "Retries end with &lt;the&gt; cart" in page
    assert page.count("<li><time") == 2
    assert client.post(f"{here}changes/", {"op": "delete", "slug": "retries-end"})["Location"] == here
    assert not Memory.objects.exists()


def test_a_refusal_keeps_what_was_typed(reader: Reader) -> None:
    mira = make_person()
    root = make_root(mira)
    client, here = reader(mira), f"/roots/{root.pk}/memory/changes/"
    long = "x" * (LINE_LENGTH + 1)
    answer = client.post(here, FIELDS | {"line": long})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert f"has {LINE_LENGTH + 1} characters" in page
    assert long in page
    client.post(here, FIELDS)
    again = client.post(here, FIELDS)
    assert "exists already" in again.content.decode()


def test_viewers_read_and_write_nothing(reader: Reader) -> None:
    mira, rui = make_person(), make_person("rui")
    root = make_root(mira)
    set_member(who=mira, root=root.pk, actor=rui.actor, role=Role.VIEWER)
    apply_memory_ops(who=mira, root=root.pk, ops=[{k: v for k, v in FIELDS.items() if v}])
    client = reader(rui)
    page = client.get(f"/roots/{root.pk}/memory/?slug=retries-end").content.decode()
    assert "Retries end" in page
    assert "Save" not in page
    assert client.post(f"/roots/{root.pk}/memory/changes/", FIELDS | {"op": "delete"}).status_code == 403
    assert Memory.objects.count() == 1


def test_a_strangers_memory_is_not_found(reader: Reader) -> None:
    root = make_root()
    assert reader(make_person("stranger")).get(f"/roots/{root.pk}/memory/").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_a_proposal_is_edited_and_accepted(reader: Reader) -> None:
    """L27."""
    mira = make_person()
    root = make_root(mira)
    session = make_session(root)
    landing = NewLanding(
        at=0,
        sha="4f1c2aa90b7d3e5f60718293a4b5c6d7e8f90a1b",
        base="9b0d7c6e5f4a39281706f5e4d3c2b1a098765432",
        target="main",
        commits=[{"sha": "4f1c2aa90b7d3e5f60718293a4b5c6d7e8f90a1b", "subject": "Retry"}],
        paths=["a.py"],
        divergence="none",
        title="Retries",
    )
    record_landing(who=mira, conversation=session.pk, new=landing)
    while run_due():
        pass
    proposal = MemoryProposal.objects.get()
    client, here = reader(mira), f"/roots/{root.pk}/memory/"
    page = client.get(f"{here}?proposal={proposal.pk}").content.decode()
    assert "4f1c2aa" in page
    form = client.get(f"{here}?proposal={proposal.pk}")
    ops = form.context["deciding"]["ops_json"]
    too_long = {"decision": "accept", "ops": ops, "line-1": "x" * (LINE_LENGTH + 1)}
    refused = client.post(f"{here}proposals/{proposal.pk}/", too_long)
    assert refused.status_code == 422
    assert "x" * (LINE_LENGTH + 1) in refused.content.decode()
    client.post(f"{here}proposals/{proposal.pk}/", too_long | {"line-1": "Retries landed"})
    assert Memory.objects.get().line == "Retries landed"
    proposal.refresh_from_db()
    assert proposal.status == "accepted"

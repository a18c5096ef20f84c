"""People of a root, new roots, new documents (S2, D9)."""

import pytest

from console.access import role_in
from console.models import Role
from documents.models import Document
from lineage.actions.members import set_member
from lineage.models import Root
from tests.console.pages.conftest import Reader
from tests.factories import make_person, make_root

pytestmark = pytest.mark.django_db


def test_an_owner_adds_changes_and_removes(reader: Reader) -> None:
    mira, rui = make_person(), make_person("rui")
    root = make_root(mira)
    client, here = reader(mira), f"/roots/{root.pk}/people/"
    assert client.post(f"{here}changes/", {"name": rui.name.upper(), "role": "viewer"})["Location"] == here
    assert role_in(rui, root.pk) == Role.VIEWER
    client.post(f"{here}changes/", {"name": rui.name, "role": "operator"})
    assert role_in(rui, root.pk) == Role.OPERATOR
    assert rui.name in client.get(here).content.decode()
    client.post(f"{here}changes/", {"name": rui.name, "role": "none"})
    assert role_in(rui, root.pk) is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "nobody", "role": "viewer"}, "There is no account nobody"),
        ({"name": "", "role": "viewer"}, "There is no account"),
        ({"role": "king"}, "Choose a role"),
        ({"role": "viewer"}, "would be left without an owner"),
    ],
)
def test_a_refusal_is_said(reader: Reader, fields: dict[str, str], said: str) -> None:
    mira = make_person()
    root = make_root(mira)
    answer = reader(mira).post(f"/roots/{root.pk}/people/changes/", {"name": mira.name} | fields)
    assert answer.status_code >= 400
    assert said in answer.content.decode()
    assert role_in(mira, root.pk) == Role.OWNER


def test_others_read_the_list_and_change_nothing(reader: Reader) -> None:
    mira, rui = make_person(), make_person("rui")
    root = make_root(mira)
    set_member(who=mira, root=root.pk, actor=rui.actor, role=Role.OPERATOR)
    client = reader(rui)
    page = client.get(f"/roots/{root.pk}/people/").content.decode()
    assert mira.name in page
    assert "Add somebody" not in page
    answer = client.post(f"/roots/{root.pk}/people/changes/", {"name": rui.name, "role": "owner"})
    assert answer.status_code == 403
    assert reader(make_person("stranger")).get(f"/roots/{root.pk}/people/").status_code == 404


def test_a_new_root_belongs_to_its_maker(reader: Reader) -> None:
    mira = make_person()
    client = reader(mira)
    assert "Make the root" in client.get("/roots/new/").content.decode()
    answer = client.post("/roots/new/", {"title": "Parcels", "folder": "/src"})
    root = Root.objects.get()
    assert answer["Location"] == f"/roots/{root.pk}/"
    assert (root.conversation.title, root.conversation.folder) == ("Parcels", "/src")
    assert role_in(mira, root.pk) == Role.OWNER
    refused = client.post("/roots/new/", {"title": " ", "folder": "/kept"})
    assert refused.status_code == 422
    assert 'value="/kept"' in refused.content.decode()


def test_a_new_document_opens(reader: Reader) -> None:
    mira = make_person()
    root = make_root(mira)
    client = reader(mira)
    answer = client.post(f"/conversations/{root.pk}/documents/", {"title": "Plan & more"})
    document = Document.objects.get()
    assert answer["Location"] == f"/documents/{document.pk}/"
    page = client.get(f"/roots/{root.pk}/").content.decode()
    assert "Plan &amp; more" in page
    viewer = make_person("rui")
    set_member(who=mira, root=root.pk, actor=viewer.actor, role=Role.VIEWER)
    assert reader(viewer).post(f"/conversations/{root.pk}/documents/", {"title": "No"}).status_code == 403

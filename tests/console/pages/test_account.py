"""The account page: password, tokens shown once, revoked for good (S1, S2)."""

import re

import pytest

from console.access import who_has_token
from console.models import Role, Token, User
from console.secrets import hashed
from lineage.actions.members import set_member
from tests.console.pages.conftest import Reader
from tests.factories import make_agent, make_person, make_root

pytestmark = pytest.mark.django_db
NEW = "a new long password 7"


def test_a_token_is_shown_once(reader: Reader) -> None:
    mira = make_person()
    root = make_root(mira)
    client = reader(mira)
    answer = client.post("/account/tokens/", {"name": "wren", "root": root.pk, "role": "agent", "days": "7"})
    secret = re.search(r'<code id="secret">([^<]+)</code>', answer.content.decode())
    assert secret is not None
    who = who_has_token(hashed(secret[1]))
    assert who is not None
    assert (who.name, who.root, who.role) == ("wren", root.pk, Role.AGENT)
    assert secret[1] not in client.get("/account/").content.decode()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "  "}, "A name has 1 to 80 characters"),
        ({"role": "owner"}, "owners are people"),
        ({"role": "king"}, "Choose a role"),
        ({"days": "0"}, "A token lives 1 to"),
        ({"days": "-1"}, "Days is a whole number"),
        ({"root": "x"}, "Choose the root"),
        ({"role": "viewer", "main": "on"}, "Only a token with the role agent"),
    ],
)
def test_refused_tokens_say_why(reader: Reader, fields: dict[str, str], said: str) -> None:
    mira = make_person()
    root = make_root(mira)
    good = {"name": "wren", "root": str(root.pk), "role": "agent"}
    answer = reader(mira).post("/account/tokens/", good | fields)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not Token.objects.exists()
    assert reader(mira).post("/account/tokens/", good).status_code == 200


def test_only_owners_make_and_see_tokens(reader: Reader) -> None:
    mira, teo, rui = make_person("mira"), make_person("teo"), make_person("rui")
    root = make_root(mira)
    set_member(who=mira, root=root.pk, actor=teo.actor, role=Role.OPERATOR)
    make_agent(root, "wren")
    fields = {"name": "moss", "root": root.pk, "role": "agent"}
    assert "wren" in reader(mira).get("/account/").content.decode()
    assert "wren" not in reader(teo).get("/account/").content.decode()
    assert reader(teo).post("/account/tokens/", fields).status_code == 403
    assert reader(rui).post("/account/tokens/", fields).status_code == 404
    assert Token.objects.count() == 1


def test_revoking(reader: Reader) -> None:
    mira, teo = make_person("mira"), make_person("teo")
    root = make_root(mira)
    _, secret = make_agent(root, "wren")
    token = Token.objects.get()
    assert reader(teo).post(f"/account/tokens/{token.pk}/revoked/").status_code == 404
    assert who_has_token(hashed(secret)) is not None
    assert reader(mira).post(f"/account/tokens/{token.pk}/revoked/").status_code == 302
    assert who_has_token(hashed(secret)) is None
    assert "revoked" in reader(mira).get("/account/").content.decode()


def test_setting_the_first_password_needs_no_old_one(reader: Reader) -> None:
    mira = make_person()
    client = reader(mira)
    answer = client.post("/account/password/", {"new": NEW})
    assert "The password is set" in answer.content.decode()
    assert User.objects.get(actor=mira.actor).check_password(NEW)
    assert client.get("/account/").status_code == 200


def test_changing_the_password_needs_the_present_one_and_ends_other_sessions(reader: Reader) -> None:
    mira = make_person()
    here = reader(mira)
    here.post("/account/password/", {"new": NEW})
    elsewhere = reader(mira)
    assert elsewhere.get("/account/").status_code == 200
    refused = here.post("/account/password/", {"password": "another", "new": "some other long one"})
    assert refused.status_code == 422
    assert User.objects.get(actor=mira.actor).check_password(NEW)
    assert here.post("/account/password/", {"password": NEW, "new": "some other long one"}).status_code == 200
    assert here.get("/account/").status_code == 200
    assert elsewhere.get("/account/").status_code == 302


@pytest.mark.parametrize("weak", ["short", "password1234"])
def test_weak_passwords_are_refused(reader: Reader, weak: str) -> None:
    mira = make_person()
    answer = reader(mira).post("/account/password/", {"new": weak})
    assert answer.status_code == 422
    assert not User.objects.get(actor=mira.actor).has_usable_password()

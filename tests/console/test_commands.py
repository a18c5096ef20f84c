"""The commands `token` and `signin` (CONTRACT, Commands)."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from console.access import who_has_token
from console.errors import DomainError, Invalid
from console.models import Role, SigninLink, User
from console.secrets import hashed
from lineage.access import root_for
from lineage.models import Root
from tests.factories import make_root

pytestmark = pytest.mark.django_db


def run(*words: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(*words, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_a_token_is_the_only_line_on_stdout() -> None:
    root = make_root()
    out, err = run("token", "wren", "--root", str(root.pk))
    assert out.count("\n") == 1
    assert out.strip() not in err
    who = who_has_token(hashed(out.strip()))
    assert who is not None
    assert (who.root, who.role, who.name) == (root.pk, Role.AGENT, "wren")
    assert who.conversation != root.pk


def test_a_new_root_is_the_tokens_conversation() -> None:
    who = who_has_token(hashed(run("token", "wren", "--root", "new", "--main")[0].strip()))
    assert who is not None
    assert who.conversation == who.root
    root = Root.objects.get(pk=who.root or 0)
    assert root.main_id == who.actor
    assert root_for(who, root.pk)


@pytest.mark.parametrize("root", ["0", "x", "99999999", "9" * 30])
def test_a_wrong_root_is_refused_and_makes_nothing(root: str) -> None:
    with pytest.raises(DomainError):
        run("token", "wren", "--root", root)
    assert Root.objects.count() == 0


def test_a_token_for_a_conversation_elsewhere_is_refused() -> None:
    mine, other = make_root(), make_root()
    with pytest.raises(Invalid):
        run("token", "wren", "--root", str(mine.pk), "--conversation", str(other.pk))


def test_a_link_signs_in(client: Client) -> None:
    """S1: GET shows a button, POST spends it."""
    out, _ = run("signin", "mira", "--create", "--url", "http://testserver/")
    path = out.strip().removeprefix("http://testserver")
    page = client.get(path)
    assert page.status_code == 200
    assert "Sign in as mira" in page.content.decode()
    assert SigninLink.objects.get().spent is None
    assert client.post(path).status_code == 302
    assert client.get("/").wsgi_request.user == User.objects.get(username="mira")
    assert client.post(path).status_code == 404


def test_a_link_for_nobody_is_refused() -> None:
    with pytest.raises(DomainError):
        run("signin", "nobody")

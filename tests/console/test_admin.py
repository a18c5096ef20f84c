"""The administration: everything to look at, nothing immutable to change, and no second way to sign in (R1, R6, S3)."""

import re
from html import unescape
from unittest import mock

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.access import Who, who_has_token, who_is_user
from console.actions.people import make_user
from console.models import Actor, Token, User
from console.reading_admin import path_to_root
from console.secrets import hashed
from lineage.actions import tasks
from lineage.actions.branches import start_branch
from lineage.actions.notify import request_notify
from lineage.models import Conversation, Task
from tests.console.pages.conftest import Reader, reader  # noqa: F401 - a fixture
from tests.factories import make_agent, make_document, make_person, make_root, say
from tests.lineage.working import work

pytestmark = pytest.mark.django_db
APPS = ("console", "documents", "lineage")


@pytest.fixture
def boss() -> Who:
    user = make_user(username="boss", superuser=True)
    return who_is_user(user)


@pytest.fixture
def client(reader: Reader, boss: Who) -> Client:  # noqa: F811 - the fixture
    return reader(boss)


@pytest.fixture
def tree() -> tuple[Who, str]:
    """A root with a session, entries and a document; the session's token."""
    mira = make_person("mira")
    root = make_root(mira)
    wren, secret = make_agent(root, "wren")
    assert wren.conversation is not None
    say(mira, wren.conversation, "begin", "yes")
    make_document(mira, root.pk)
    return wren, secret


def _models() -> list[type[models.Model]]:
    return [model for app in APPS for model in apps.get_app_config(app).get_models()]


def test_every_model_is_there() -> None:
    assert [model for model in _models() if not admin.site.is_registered(model)] == []


def test_every_list_and_every_row_can_be_looked_at(client: Client, tree: tuple[Who, str]) -> None:
    shown = 0
    for model in _models():
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert client.get(base).status_code == 200, base
        assert client.get(base + "?q=1").status_code in {200, 302}, base
        row = model._default_manager.first()
        if row is not None:
            assert client.get(f"{base}{row.pk}/change/").status_code == 200, base
            shown += 1
    assert shown >= 10


def test_what_is_recorded_cannot_be_changed(client: Client, tree: tuple[Who, str]) -> None:
    for model in _models():
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert client.get(base + "add/").status_code == 403, base
        row = model._default_manager.first()
        if row is None or model is Actor:
            continue
        assert client.post(f"{base}{row.pk}/change/", {}).status_code == 403, base
        assert client.post(f"{base}{row.pk}/delete/", {"post": "yes"}).status_code == 403, base


def said(client: Client, action: str, task: int) -> str:
    posted = {"action": action, "_selected_action": [task]}
    page = client.post("/admin/lineage/task/", posted, follow=True).content.decode()
    found = re.search(r'<ul class="messagelist">(.*?)</ul>', page, re.DOTALL)
    assert found is not None
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", found[1]).split()))


def test_tasks_are_run_again_aborted_and_nudged(
    client: Client, tree: tuple[Who, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """L9: the operator's actions, each with a sentence for what it did or why not."""
    wren, _ = tree
    mira = make_person("mira", superuser=True)
    assert wren.conversation is not None
    target = Conversation.objects.get(pk=wren.conversation)
    caller = start_branch(who=mira, source=target.root_id, prompt="Wait.")
    work()
    say(mira, target.pk, "Go on.", "Half.", end=False)
    task = request_notify(who=mira, caller=caller, target=target.pk)["task"]
    work()
    assert said(client, "retry", task) == f"Task {task}: Task {task} is waiting: only a failed one runs again."
    hint = mock.Mock(return_value=True)
    monkeypatch.setattr(tasks, "send_nudge", hint)
    assert said(client, "nudge", task) == f"Task {task} was nudged."
    hint.assert_called_once_with([task], [f"conversation:{target.pk}"])
    monkeypatch.setattr(tasks, "send_nudge", lambda *hint: False)
    assert said(client, "nudge", task).startswith(f"Task {task}: Valkey does not answer")
    assert said(client, "abort", task) == f"Task {task} is being aborted."
    assert Task.objects.get(pk=task).outcome == "aborted"
    assert said(client, "abort", task) == f"Task {task}: Task {task} ended already: aborted."
    assert said(client, "nudge", task) == f"Task {task}: Task {task} ended already: aborted."
    Task.objects.filter(pk=task).update(outcome="failed", error="Its worker died.")
    assert said(client, "retry", task) == f"Task {task} runs again."
    assert (Task.objects.get(pk=task).status, Task.objects.get(pk=task).error) == ("pending", "")


def test_only_who_may_look_acts(reader: Reader, tree: tuple[Who, str]) -> None:  # noqa: F811
    there = reader(make_person("teo"))
    assert there.post("/admin/lineage/task/", {"action": "abort", "_selected_action": [1]}).status_code == 302


def test_every_list_of_a_tree_can_be_narrowed_to_it(client: Client, tree: tuple[Who, str]) -> None:
    """By the root, by states, by a search; and an address that names no root shows nothing."""
    other = make_root(make_person("teo"), title="Another")
    narrowed = 0
    for model in apps.get_app_config("lineage").get_models():
        base = f"/admin/lineage/{model._meta.model_name}/"
        view = admin.site.get_model_admin(model)
        assert view.search_fields, base
        if path_to_root(model) is None:
            continue
        narrowed += 1
        rows = client.get(f"{base}?root={other.pk}").context["cl"].queryset
        assert list(rows) == list(model._default_manager.filter(**{str(path_to_root(model)): other.pk}).order_by("-pk"))
        for wrong in ("x", "9" * 30):
            assert client.get(f"{base}?root={wrong}").context["cl"].queryset.count() == 0
    assert narrowed >= 20
    entries = client.get("/admin/lineage/entry/").content.decode()
    assert "?root=" in entries
    page = client.get("/admin/lineage/conversation/").content.decode()
    assert f"/admin/lineage/entry/?conversation__id__exact={other.pk}" in page
    for path in ("entry", "task", "submission"):
        assert client.get(f"/admin/lineage/{path}/?conversation__id__exact={other.pk}").status_code == 200
    with CaptureQueriesContext(connection) as few:
        client.get("/admin/lineage/conversation/")
    for number in range(5):
        make_root(make_person("teo"), title=f"Number {number}")
    with CaptureQueriesContext(connection) as more:
        client.get("/admin/lineage/conversation/")
    assert len(more) == len(few)


def test_lists_are_named_in_english(client: Client) -> None:
    page = client.get("/admin/").content.decode()
    for name in ("Entries", "Memories", "Edit batches", "Author runs", "Conversations"):
        assert f">{name}<" in page, name
    assert "Entrys" not in page


def test_secrets_are_not_shown(client: Client, tree: tuple[Who, str]) -> None:
    token = Token.objects.get()
    assert token.secret_hash not in client.get(f"/admin/console/token/{token.pk}/change/").content.decode()
    user = User.objects.get(username="boss")
    assert user.password not in client.get(f"/admin/console/user/{user.pk}/change/").content.decode()


def test_only_staff_come_in_and_by_the_consoles_own_door(reader: Reader, tree: tuple[Who, str]) -> None:  # noqa: F811
    stranger = Client(headers={"host": "localhost"})
    answer = stranger.get("/admin/", follow=True)
    assert answer.redirect_chain[-1][0] == "/signin/?next=%2Fadmin%2F"
    posted = stranger.post("/admin/login/", {"username": "boss", "password": "x"})
    assert posted["Location"].startswith("/signin/")
    assert reader(make_person("teo")).get("/admin/", follow=True).status_code == 403


def test_tokens_are_revoked_by_the_action(client: Client, tree: tuple[Who, str]) -> None:
    _, secret = tree
    assert who_has_token(hashed(secret)) is not None
    token = Token.objects.get()
    client.post("/admin/console/token/", {"action": "revoke", "_selected_action": [token.pk]})
    assert who_has_token(hashed(secret)) is None


def test_accounts_are_closed_opened_and_linked(client: Client, reader: Reader, boss: Who) -> None:  # noqa: F811
    mira = make_person("mira")
    account = User.objects.get(actor=mira.actor)
    there = reader(mira)
    assert there.get("/account/").status_code == 200
    own = User.objects.get(actor=boss.actor)
    client.post("/admin/console/user/", {"action": "close", "_selected_action": [account.pk, own.pk]})
    assert there.get("/account/").status_code == 302
    assert client.get("/admin/").status_code == 200
    assert Actor.objects.get(pk=mira.actor).closed is not None
    client.post("/admin/console/user/", {"action": "open", "_selected_action": [account.pk]})
    assert Actor.objects.get(pk=mira.actor).closed is None
    page = client.post("/admin/console/user/", {"action": "make_link", "_selected_action": [account.pk]}, follow=True)
    assert ", once and for 24 hours: http://localhost/signin/" in page.content.decode()


def test_actors_are_renamed(client: Client, tree: tuple[Who, str]) -> None:
    wren, _ = tree
    client.post(f"/admin/console/actor/{wren.actor}/change/", {"name": "  kestrel "})
    assert Actor.objects.get(pk=wren.actor).name == "kestrel"

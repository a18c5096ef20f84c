"""A whole tree out and in again, equal (C5)."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings

from console.access import Who, who_is_user
from console.actions.people import make_user
from console.archive.exporting import export_root
from console.archive.restoring import restore_root
from console.board.keeping import fold_touched
from console.models import Actor, ActorKind, BoardRow, Membership, Token, Touched
from console.search.finding import search
from documents.attachments.storing import attachments_folder
from lineage.access import visible_roots
from lineage.models import Conversation, Entry, Landing, MemoryProposal, Submission
from tests.console.archive.trees import account, forget_everything, grow, picture, take
from tests.console.search.test_search import read_all
from tests.console.test_verify import verify
from tests.factories import change, make_agent, make_document, make_root, say
from tests.lineage.test_day import Api
from tests.lineage.working import work

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> Path:
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"
    return tmp_path / "attachments"


@pytest.fixture
def mira() -> Who:
    forget_everything()  # so that numbers begin with 1 in each test
    return who_is_user(make_user(username="mira", superuser=True))


def empty_console(folder: Path) -> Who:
    """Another one, in which mira has an account too, with another number."""
    forget_everything()
    for file in attachments_folder().iterdir():
        file.unlink()
    for name in ("olaf", "ines", "mira"):
        make_user(username=name)
    return account("mira")


def plain(tables: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Tables without what is a console's own: numbers of actors, and that landings were restored."""
    names = {row["id"]: row["name"] for row in tables["actor"]}
    acting = {
        "actor_id",
        "author_id",
        "creator_id",
        "agent_id",
        "main_id",
        "uploader_id",
        "started_by_id",
        "decided_by_id",
    }
    for rows in tables.values():
        for row in rows:
            for column in acting & set(row):
                row[column] = names.get(row[column])
            row.pop("restored", None)
    for row in tables["authorruns"]:
        row["runs"] = [(names[actor], length) for actor, length in eval(row["runs"])]
    return tables


def test_a_tree_comes_in_again_equal(mira: Who, tmp_path: Path, folder: Path) -> None:
    root = grow(mira, tmp_path / "project")
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    before = picture(root, mira)
    manifest = export_root(root=root, path=first)
    assert manifest.tables["transcriptpiece"].rows
    here = empty_console(folder)
    restore_root(path=first, owner="mira")
    assert verify() == (0, "")
    after = picture(root, here)
    assert after.keys() == before.keys()
    for name, value in before.items():
        assert after[name] == value, name
    export_root(root=root, path=second)
    (_, tables, files), (_, again, files_again) = take(first), take(second)
    assert files == files_again
    assert len(files) == 4
    left, right = plain(tables), plain(again)
    left.pop("actor")
    right.pop("actor")
    for name, rows in left.items():
        assert right[name] == rows, name
    empty = sorted(name for name, rows in left.items() if not rows)
    assert empty == ["approval", "draft", "loadreceipt", "modelrequest", "rule"]  # test_under_way has these


def test_it_goes_on_growing(mira: Who, tmp_path: Path, folder: Path) -> None:
    """New entries, forks, edits, notes, memories; the board and search fill by themselves; a landing is not memorized again."""
    root = grow(mira, tmp_path / "project")
    export_root(root=root, path=tmp_path / "tree.zip")
    conversations = set(Conversation.objects.values_list("pk", flat=True))
    here = empty_console(folder)
    restore_root(path=tmp_path / "tree.zip", owner="mira")
    proposals = MemoryProposal.objects.count()
    assert work() == 0
    assert set(Landing.objects.values_list("restored", flat=True)) == {True}
    assert MemoryProposal.objects.count() == proposals
    read_all()
    assert (BoardRow.objects.get().root, Touched.objects.count()) == (root, 0)
    assert {found.kind for found in search(who=here, asked="cents")[0]} >= {"entry"}
    assert search(who=here, asked="2024")[0][0].kind == "memory"
    api = Api(here)
    tax = Conversation.objects.get(title="Tax rounding", kind="branch").pk
    fork = api.post(f"conversations/{tax}/branches", {"prompt": "Go on.", "title": "Further"})["id"]
    assert fork > max(conversations)
    work()
    wren, _ = make_agent(make_root(here), "wren")
    assert wren.conversation is not None
    assert make_agent(visible_roots(here).get(pk=root), "finch")[0].conversation
    say(here, tax, "More?", "More.")
    made = make_document(here, fork)
    assert change(here, made.pk, "one", "1") == 1
    shared = next(item for item in api.get(f"conversations/{tax}/documents")["items"] if item["title"] == "Shared")
    change(here, shared["id"], "<>", "71 <>")
    api.post("conversations/root/notes", {"text": "Restored.", "from": fork})
    api.post(f"roots/{root}/memories", {"ops": [{"op": "delete", "slug": "rounding"}]})
    land = {
        "conversation": tax, "at": 3, "sha": "c" * 40, "base": "b" * 40, "target": "main", "title": "Again",
        "commits": [], "paths": [], "divergence": "none",
    }  # fmt: skip
    assert api.post("landings", land)["status"] == "noted"
    assert work() > 0
    assert verify() == (0, "")


def test_repeats_stay_repeats(mira: Who, tmp_path: Path, folder: Path) -> None:
    """R4, also where the rows have other numbers than before."""
    root = grow(mira, tmp_path / "project")
    tax = Conversation.objects.get(title="Tax rounding", kind="branch").pk
    note = {"text": "Prices come in cents.", "from": tax, "request_id": "n1"}
    first = Api(mira).post("conversations/root/notes", note)
    text = Submission.objects.get(pk=first["id"]).data
    export_root(root=root, path=tmp_path / "tree.zip")
    empty_console(folder)
    with connection.cursor() as cursor:
        cursor.execute("ALTER SEQUENCE lineage_conversation_id_seq RESTART WITH 5000")
        cursor.execute("ALTER SEQUENCE documents_document_id_seq RESTART WITH 5000")
    other = make_root(account("olaf"))
    wren, _ = make_agent(other)
    assert wren.conversation is not None
    say(wren, wren.conversation, *["word"] * 50)
    made = make_document(account("olaf"), other.pk)
    change(account("olaf"), made.pk, "one", "1")
    Api(account("olaf")).post("conversations/root/notes", {"text": "Mine.", "from": wren.conversation})
    untouched = picture(other.pk, account("olaf"))
    restore_root(path=tmp_path / "tree.zip", owner="mira")
    api = Api(account("mira"))
    again = api.post("conversations/root/notes", note)
    assert again["id"] != first["id"]
    assert {**again, "id": 0} == {**first, "id": 0}
    assert Submission.objects.get(pk=again["id"]).data == text
    landing = take(tmp_path / "tree.zip")[1]["landing"][0]
    land = {
        "conversation": tax, "at": 3, "sha": landing["sha"], "base": "b" * 40, "target": "main", "title": "x",
        "commits": [], "paths": [], "divergence": "none", "request_id": "l1",
    }  # fmt: skip
    assert api.post("landings", land)["id"] == Landing.objects.get(root=root).pk
    assert picture(other.pk, account("olaf")) == untouched
    assert Conversation.objects.count() == len(take(tmp_path / "tree.zip")[1]["conversation"]) + 2
    assert make_root(account("olaf")).pk > other.pk
    assert verify() == (0, "")


def test_who_acted_stays_and_who_may_is_new(mira: Who, tmp_path: Path, folder: Path) -> None:
    """People by the name of their account; one without comes closed; agents without a token; only the named owner may."""
    olaf = who_is_user(make_user(username="olaf"))
    ghost = who_is_user(make_user(username="ghost"))
    root = make_root(mira)
    for who in (olaf, ghost):
        Membership.objects.create(root=root, actor_id=who.actor, role="operator", created=root.conversation.created)
        say(who, root.pk, f"I am {who.name}.")
    wren, _ = make_agent(root, "wren", main=True)
    assert wren.conversation is not None
    say(wren, wren.conversation, "Hello", "Hi")
    export_root(root=root.pk, path=tmp_path / "tree.zip")
    empty_console(folder)
    restore_root(path=tmp_path / "tree.zip", owner="Ines")
    assert [(m.actor.name, m.role) for m in Membership.objects.all()] == [("ines", "owner")]
    assert Token.objects.count() == 0
    authors = {entry.author for entry in Entry.objects.select_related("author") if entry.author}
    assert account("olaf").actor in {author.pk for author in authors}
    (gone,) = [author for author in authors if author.name == "ghost"]
    assert (gone.kind, gone.user, gone.closed is not None) == (ActorKind.PERSON, None, True)
    (agent,) = [author for author in authors if author.name == "wren"]
    assert (agent.kind, agent.closed) == (ActorKind.AGENT, None)
    assert Actor.objects.get(pk=agent.pk) == visible_roots(account("ines")).get().main
    assert not visible_roots(account("olaf")).exists()


def test_commands_say_what_they_did(mira: Who, tmp_path: Path, folder: Path) -> None:
    root = make_root(mira, title="Parcels")
    said: dict[str, str] = {}
    for words in (["export", f"#{root.pk}", str(tmp_path / "a.zip")], ["restore", str(tmp_path / "a.zip")]):
        out = StringIO()
        call_command(*words, stdout=out, stderr=StringIO())
        said[words[0]] = out.getvalue()
        if words[0] == "export":
            empty_console(folder)
    assert said["export"].startswith(f"#{root.pk} Parcels: 1 conversations, 0 entries, 0 documents, 0 attachments in ")
    assert said["restore"].startswith(f"#{root.pk} Parcels: 1 conversations, 0 entries")
    assert Membership.objects.count() == 0
    assert list(attachments_folder().iterdir()) == []
    assert fold_touched() is False

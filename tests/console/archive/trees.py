"""A rich tree for exports, all that can be read of a tree, and a console in which everything was forgotten."""

import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from django.apps import apps
from django.db import connection

from console.access import Who, who_is_user
from console.models import Actor, User
from documents.actions.editing import edit_document
from documents.author_runs import authors_at
from documents.edits import Edit
from documents.models import Document
from documents.texts import text_at
from lineage.actions.attachments import upload_attachment
from lineage.actions.imports import raw_line
from lineage.actions.subagents import start_subagent
from lineage.loading import load_context
from lineage.models import Conversation, Entry, Memory, MemoryChange, Root
from lineage.timeline import timeline
from tests.factories import change, make_agent, make_document, make_root
from tests.lineage.test_day import Api
from tests.lineage.transcripts.importing import copy_samples, import_all
from tests.lineage.working import work

SHA = "a" * 40


def grow(mira: Who, folder: Path) -> int:
    """A tree with everything that a tree can have, nothing of it under way; its root."""
    api = Api(mira)
    root = api.post("roots", {"title": "Checkout service"})["id"]
    row = Root.objects.get(pk=root)
    tax = api.post(f"conversations/{root}/branches", {"prompt": "Round the tax.", "title": "Tax"})["id"]
    work()
    api.answer(tax, 'I looked at "totals.py" – 🧾.')
    api.post(f"conversations/{tax}/abstract", {"text": "Found it.", "title": "Tax rounding"})
    nested = api.post(f"conversations/{tax}/branches", {"prompt": "Look afresh.", "at": 3})["id"]
    work()
    api.answer(nested, "Nothing new.")
    api.post(f"conversations/{nested}/abstract", {"text": "Still nothing."})
    wren, secret = make_agent(row, "wren", main=True)
    as_wren = Api(secret=secret)
    assert wren.conversation is not None
    agent = start_subagent(who=mira, owner=tax, at=3, call="toolu_1", prompt="Find the tests.")
    work()
    api.answer(agent, "In tests/.")
    api.post("conversations/root/notes", {"text": "Prices come in cents.", "from": tax, "request_id": "n1"})
    as_wren.post(f"conversations/{tax}/notes", {"text": "Mind the cents.", "request_id": "n2"})
    api.post(f"conversations/{nested}/notify", {"target": tax, "wake": False, "request_id": "f1"})
    work()
    land = {
        "conversation": tax, "at": 3, "sha": SHA, "base": "b" * 40, "target": "main", "title": "Tax rounding",
        "commits": [{"sha": SHA, "subject": "Say why"}], "paths": ["shop/totals.py"], "divergence": "1 ahead",
        "request_id": "l1",
    }  # fmt: skip
    api.post("landings", land)
    work()
    add = {"op": "add", "slug": "rounding", "kind": "decision", "line": "Per line", "body": "By law."}
    api.post(f"roots/{root}/memories", {"ops": [add, {**add, "slug": "gone"}]})
    api.post(f"roots/{root}/memories", {"ops": [{**add, "op": "update", "body": "By law, since 2024."}]})
    api.post(f"roots/{root}/memories", {"ops": [{"op": "delete", "slug": "gone"}]})
    api.post(f"conversations/{root}/branches", {"prompt": "Begin with what is known."})
    work()
    long = {"kind": "x.log", "data": {"text": "l" * 20_000, "odd": 1.50}}
    as_wren.post(f"conversations/{wren.conversation}/entries", {"entries": [long, {"kind": "turn_end"}]})
    _write_documents(mira, wren, root, tax, api)
    upload_attachment(who=mira, conversation=tax, filename="plan.md", chunks=[b"# Plan\n"])
    upload_attachment(who=mira, conversation=tax, filename="x.bin", chunks=[b"\0\1"])
    work()
    import_all(copy_samples(folder, "syn-01-tree", "syn-02-irregular"), root=root)
    work()
    for session in Conversation.objects.filter(root=root, turn_open=True).order_by("-pk"):
        api.answer(session.pk, "At the end.")
    return int(root)


def _write_documents(mira: Who, wren: Who, root: int, tax: int, api: Api) -> None:
    shared = make_document(mira, root, "<>\n", title="Shared")
    for number in range(70):  # beyond a snapshot
        who = wren if number % 2 else mira
        edit_document(who=who, document=shared.pk, edits=[Edit(old_string="<>", new_string=f"{number} \\u <>")])
    own = make_document(mira, tax, title="Own")
    change(mira, own.pk, "two", "2")
    fork = api.post(f"conversations/{tax}/branches", {"prompt": "Write on."})["id"]
    work()
    api.answer(fork, "I did.")
    seen = api.get(f"conversations/{fork}/documents")["items"]
    place = next(item["id"] for item in seen if item["title"] == "Own")
    api.post(f"conversations/{fork}/documents", {"title": "Another"})
    copied = api.get(f"documents/{place}?conversation={fork}")
    assert copied["text"].startswith("one")


def picture(root: int, who: Who) -> dict[str, Any]:
    """All that can be read of the tree. People and agents by name, since their numbers are a console's own."""
    api, found = Api(who), dict[str, Any]()
    rows = list(Conversation.objects.filter(root=root).order_by("pk"))
    for row in rows:
        head = api.get(f"conversations/{row.pk}")
        entries = api.get(f"conversations/{row.pk}/entries?after=0&limit=1000&inherited=true")["items"]
        for entry in entries:
            entry["author"] = entry["author"] and [entry["author"]["name"], entry["author"]["kind"]]
        found[f"#{row.pk}"] = (head, entries, load_context(row).messages, row.path)
        found[f"documents of #{row.pk}"] = [
            item["id"] for item in api.get(f"conversations/{row.pk}/documents")["items"]
        ]
        files = api.get(f"conversations/{row.pk}/attachments")["items"]
        found[f"files of #{row.pk}"] = [
            (item, api.get(f"attachments/{item['name']}") if item["status"] == "extracted" else None) for item in files
        ]
        found[f"raw lines of #{row.pk}"] = [
            raw_line(conversation=row.pk, seq=seq)
            for seq in Entry.objects.filter(conversation=row).order_by("seq").values_list("seq", flat=True)
        ]
    names = dict(Actor.objects.values_list("pk", "name"))
    for document in Document.objects.filter(root=root).order_by("pk"):
        first = document.snapshots.order_by("revision")[0].revision
        found[f"document {document.pk}"] = [
            (text_at(document, revision), [(names[a], n) for a, n in authors_at(document, revision)])
            for revision in range(first, document.revision + 1)
        ]
    found["memories"] = list(Memory.objects.filter(root=root).order_by("slug").values_list("slug", "line", "body"))
    found["history"] = list(
        MemoryChange.objects.filter(root=root)
        .order_by("version", "ordinal")
        .values_list("version", "ordinal", "op", "slug", "before", "after", "author__name", "time")
    )
    lines = timeline(Root.objects.get(pk=root))
    found["timeline"] = [str(asdict(line)) for line in lines.lines] if hasattr(lines, "lines") else repr(lines)
    return found


def forget_everything() -> None:
    """An empty console, as after `migrate`. Only the numbers of conversations and documents go on, and those of actors: what a
    process keeps by such a number is never of another one."""
    going_on = ("lineage_conversation", "documents_document", "console_actor")
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"nextval(pg_get_serial_sequence('{name}', 'id'))" for name in going_on))
        numbers = cursor.fetchone()
        names = [
            model._meta.db_table
            for model in apps.get_models()
            if model._meta.app_label in {"console", "documents", "lineage"}
        ]
        cursor.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY CASCADE")
        for name, number in zip(going_on, numbers, strict=True):
            cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [name, number])


def take(path: Path) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]], dict[str, bytes]]:
    """(manifest, rows by table, files) of an export."""
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        tables = {
            name: [
                dict(zip(part["columns"], msgspec.json.decode(line), strict=True))
                for line in archive.read(f"tables/{name}.jsonl").splitlines()
            ]
            for name, part in manifest["tables"].items()
        }
        files = {name: archive.read(name) for name in archive.namelist() if name.startswith("attachments/")}
    return manifest, tables, files


def put(path: Path, parts: dict[str, bytes]) -> Path:
    """A file with these parts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def parts_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def account(name: str) -> Who:
    """The person with that account."""
    return who_is_user(User.objects.get(username=name))


__all__ = ["account", "forget_everything", "grow", "make_root", "parts_of", "picture", "put", "take"]

"""A day of a tree over HTTP, from an empty root on, and the entries that it leaves (L12–L29)."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from console.access import Who
from console.models import Actor, User
from documents.verifying import document_faults
from lineage.repositories import read_merged
from lineage.verifying import conversation_faults
from tests.factories import make_agent, make_person
from tests.lineage.test_land import Repository
from tests.lineage.working import work

pytestmark = pytest.mark.django_db(transaction=True)


class Api:
    """Calls as one who is signed in, or with a bearer token."""

    def __init__(self, who: Who | None = None, secret: str = "") -> None:
        self.client = Client()
        self.headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        if who is not None:
            self.client.force_login(User.objects.get(actor=Actor.objects.get(pk=who.actor)))

    def get(self, path: str, status: int = 200) -> Any:
        answer = self.client.get(f"/api/{path}", headers=self.headers)
        assert answer.status_code == status, answer.content
        return answer.json()

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        answer = self.client.post(
            f"/api/{path}", json.dumps(body or {}), content_type="application/json", headers=self.headers
        )
        assert answer.status_code == status, answer.content
        return answer.json()

    def delete(self, path: str, status: int = 200) -> Any:
        answer = self.client.delete(f"/api/{path}", headers=self.headers)
        assert answer.status_code == status, answer.content
        return answer.json()

    def transcript(self, conversation: int) -> list[str]:
        """One line per entry: number, kind, and what the model reads of it, `-` for nothing."""
        found = self.get(f"conversations/{conversation}/entries?limit=1000&after=0")["items"]
        return [f"{entry['seq']} {entry['kind']}: {read(entry)}" for entry in found]

    def answer(self, conversation: int, text: str) -> None:
        """What an outside runner does for a conversation: its answer, and the end of its turn."""
        message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
        self.post(
            f"conversations/{conversation}/entries",
            {"entries": [{"kind": "assistant", "model": [message]}, {"kind": "turn_end"}]},
        )


def read(entry: dict[str, Any]) -> str:
    parts = []
    for message in entry["model"]:
        content = message["content"]
        parts += [content] if isinstance(content, str) else [str(block.get("text")) for block in content]
    edited = [f"[{edit['action']} {edit['target']}]" for edit in entry.get("edits", [])]
    return " ".join([*(part.replace("\n", " | ") for part in parts), *edited]) or "-"


def read_landing(repository: Repository, base: str) -> dict[str, Any]:
    """What the repository says of a landing, as a lander posts it."""
    merged = read_merged(repository.folder, base)
    names = ("sha", "base", "target", "commits", "commit_count", "paths", "divergence", "lander")
    return {name: getattr(merged, name) for name in names}


def test_a_day(tmp_path: Path) -> None:
    mira = make_person()
    api = Api(mira)
    repository = Repository(tmp_path)

    # An empty root becomes a tally with its first branch.
    root = api.post("roots", {"title": "Checkout service"})["id"]
    tax = api.post(f"conversations/{root}/branches", {"prompt": "Round the tax per line.", "title": "Tax"})["id"]
    work()
    api.answer(tax, "I looked at totals.py.")
    total = api.post(f"conversations/{root}/branches", {"prompt": "Show the total.", "request_id": "b"})["id"]
    assert api.post(f"conversations/{root}/branches", {"prompt": "Again.", "request_id": "b"})["id"] == total
    work()
    # A branch from an entry that the source inherited.
    nested = api.post(f"conversations/{tax}/branches", {"prompt": "Look at it afresh.", "at": 1})["id"]
    work()
    refused = api.post(f"conversations/{root}/submissions", {"type": "input", "content": "Go."}, status=409)
    assert refused["error"]["code"] == "tally"

    # Abstracts replace each other in place.
    first = api.post(f"conversations/{tax}/abstract", {"text": "Found the rounding.", "title": "Tax rounding"})
    api.post(f"conversations/{total}/abstract", {"text": "Nothing yet."})
    second = api.post(f"conversations/{tax}/abstract", {"text": "Rounded per line.", "feature": "totals"})
    assert second["anchor"] == first["entry"]

    # A note to the root, and two finishes: one wakes, one does not.
    api.post("conversations/root/notes", {"text": "Prices come in cents.", "from": tax})
    api.post(f"conversations/{total}/notify", {"target": tax})
    api.post(f"conversations/{nested}/notify", {"target": tax, "wake": False})
    work()
    api.post(f"conversations/{nested}/notify", {"target": nested}, status=422)

    # Two landings of a real repository: what is on main, and what a release got that main has not.
    for subject in ("Round per line", "Say why"):
        repository.commit("shop/totals.py", subject)
    land = {
        **read_landing(repository, "main~2"),
        "conversation": tax,
        "at": 3,
        "title": "Tax rounding",
        "summary": "The law wants it.",
        "request_id": "l1",
    }
    landed = api.post("landings", land)
    assert api.post("landings", land) == landed
    api.post("landings", {**land, "commit_count": 0, "request_id": "l2"}, status=422)
    repository.git("checkout", "-q", "-b", "release", "main~1")
    repository.commit("shop/release.py", "Hold the old total")
    held = {**read_landing(repository, "release~1"), "conversation": nested, "at": 2, "title": "Afresh"}
    api.post("landings", {**held, "request_id": "l3"})
    work()

    # Memory: one batch refused whole, one applied, and a fork from the brief.
    good = {"op": "add", "slug": "rounding", "kind": "decision", "line": "Tax is rounded per line", "body": "By law."}
    refused = api.post(f"roots/{root}/memories", {"ops": [good, {**good, "slug": "x", "line": "l" * 161}]}, status=422)
    assert {k: refused["error"][k] for k in ("code", "ordinal", "slug", "field", "limit", "actual")} == {
        "code": "too_long", "ordinal": 2, "slug": "x", "field": "line", "limit": 160, "actual": 161,
    }  # fmt: skip
    assert api.get(f"roots/{root}/memories")["items"] == []
    api.post(f"roots/{root}/memories", {"ops": [good], "request_id": "m"})
    assert api.get(f"roots/{root}/memories/rounding")["body"] == "By law."
    api.get(f"roots/{root}/memories/absent", status=404)
    proposals = api.get(f"roots/{root}/proposals")["items"]
    assert [p["landing"]["title"] for p in proposals] == ["Afresh", "Tax rounding"]
    api.post(f"proposals/{proposals[0]['id']}/decision", {"decision": "drop"})
    briefed = api.post(f"conversations/{root}/branches", {"prompt": "Begin with what is known."})["id"]
    work()

    # Catch-up with "N more" before the next input.
    ideas = [api.post(f"conversations/{root}/branches", {"prompt": f"Idea {number}."})["id"] for number in range(21)]
    asked = api.post(f"conversations/{total}/submissions", {"type": "input", "content": "Go on."})
    assert (asked["status"], asked["reason"]) == ("unanswered", "no_model")

    merged, released = land["sha"][:7], held["sha"][:7]
    begun = [f"#{idea} started from #{root}/{at}: Idea {at - 11}." for at, idea in enumerate(ideas, 11)]
    assert api.transcript(root) == [
        "1 reset: -",
        f"2 lineage.branched: #{tax} started from #{root}/1: Tax",
        f"3 lineage.branched: #{total} started from #{root}/2: Show the total.",
        f"4 lineage.branched: #{nested} started from #{tax}/1: Look at it afresh.",
        f"5 lineage.abstract: Abstract of #{tax} Tax rounding, as of #{tax}/5: | Found the rounding.",
        f"6 lineage.abstract: Abstract of #{total}, as of #{total}/3: | Nothing yet.",
        "7 lineage.abstract: [replace 5]",
        f"8 lineage.note: Note from #{tax} Tax rounding: Prices come in cents.",
        f"9 lineage.note: Note from the lander: Landed {merged} on main from #{tax}/3 Tax rounding: | "
        "Diverged: 2 ahead of main~2, 0 behind | Say why | Round per line | Changed: shop/totals.py |  | "
        f"State at landing, as of #{tax}/5: | Rounded per line. [omit 5]",
        f"10 lineage.note: Note from the lander: Landed {released} on release from #{nested}/2 Afresh: | "
        "Diverged: 1 ahead of main, 1 behind | Hold the old total | Changed: shop/release.py",
        f"11 lineage.branched: #{briefed} started from #{root}/10: Begin with what is known.",
        *(f"{seq} lineage.branched: {line}" for seq, line in enumerate(begun, 12)),
    ]
    assert api.transcript(tax) == [
        "2 user: Round the tax per line.",
        "3 assistant: I looked at totals.py.",
        "4 turn_end: -",
        "5 lineage.branched: -",
    ]
    told = f"#{tax} finished: Tax rounding |  | It last said: | I looked at totals.py."
    news = f"lineage.note: New in the tally of #{root} since you last looked:"
    assert api.transcript(nested) == [
        f"2 {news} | - #{tax} started from #{root}/1: Tax | - #{total} started from #{root}/2: Show the total.",
        "3 user: Look at it afresh.",
        f"4 lineage.note: {told}",
    ]
    assert api.transcript(briefed) == [
        f"11 reset: What this project remembers (1), kept in #{root}: | - rounding (decision): Tax is rounded per line |  | "
        f"The 2 newest landings: | - {released} on release from #{nested}/2 Afresh | "
        f"- {merged} on main from #{tax}/3 Tax rounding",
        "12 user: Begin with what is known.",
    ]
    assert api.transcript(total) == [
        "3 user: Show the total.",
        f"4 {news} | - #{nested} started from #{tax}/1: Look at it afresh. | "
        f"- Abstract of #{tax}, as of #{tax}/5: Rounded per line.",
        f"5 lineage.finished: {told}",
        f"6 {news} | 4 more before these, from #{root}/9 on{''.join(f' | - {line}' for line in begun[1:])}",
        "7 user: Go on.",
    ]
    assert [*document_faults(), *conversation_faults()] == []


def test_an_agent_is_told_over_its_inbox(tmp_path: Path) -> None:
    """L24, over HTTP with tokens."""
    mira = make_person()
    api = Api(mira)
    root = api.post("roots", {"title": "Checkout service"})["id"]
    from lineage.models import Root

    row = Root.objects.get(pk=root)
    (wren, wrens), (finch, finchs) = make_agent(row, "wren"), make_agent(row, "finch")
    as_wren, as_finch = Api(secret=wrens), Api(secret=finchs)
    as_wren.post(f"conversations/{wren.conversation}/notes", {"text": "x"}, status=200)
    sent = as_wren.post(f"conversations/{finch.conversation}/notes", {"text": "Mind the cents."})
    assert sent["status"] == "sent"
    as_finch.answer(finch.conversation or 0, "All cents.")
    as_wren.post(f"conversations/{wren.conversation}/notify", {"target": finch.conversation})
    work()
    items = as_finch.get(f"conversations/{finch.conversation}/inbox")["items"]
    assert [(item["kind"], item["from"], item["text"]) for item in items] == [
        ("note", wren.conversation, f"Note from #{wren.conversation} (@wren): Mind the cents.")
    ]
    receipts = as_wren.get(f"conversations/{wren.conversation}/notes?direction=sent")["items"]
    assert [(r["to"], r["status"], r["included"]) for r in receipts if r["to"] == finch.conversation] == [
        (finch.conversation, "read", "inbox")
    ]
    found = as_wren.get(f"conversations/{wren.conversation}/inbox")
    assert found["items"][-1]["text"] == f"#{finch.conversation} finished: finch\n\nIt last said:\nAll cents."
    assert found["items"][-1]["kind"] == "finished"
    assert as_wren.get(f"conversations/{wren.conversation}/inbox")["items"] == []
    queued = api.post(f"conversations/{wren.conversation}/submissions", {"type": "input", "content": "Look."})
    assert api.delete(f"submissions/{queued['id']}")["status"] == "withdrawn"
    other = Api(make_person())
    other.get(f"conversations/{wren.conversation}/inbox", status=404)
    api.get(f"conversations/{wren.conversation}/inbox?wait=61", status=422)
    assert api.post(f"conversations/{wren.conversation}/stop") == {"stopped": [], "withdrawn": []}

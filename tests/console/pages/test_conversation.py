"""The page of a conversation: newest first, whole on demand, and only for those who may read (C1, C3, S2, S3)."""

import base64
import re
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from console.access import Who
from console.pages.calls import OUTPUT_LINES
from console.pages.entries import PROSE_CHARACTERS
from console.pages.reading import PAGE
from lineage.actions.entries import NewEntry, lock_conversation, place_entries
from tests.console.pages.conftest import Reader
from tests.factories import make_agent, make_person, make_root, say

pytestmark = pytest.mark.django_db
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


def _text(answer: Any) -> str:
    return str(answer.content.decode())


def _seqs(page: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'<(?:article|div|details)[^>]* id="e(\d+)"', page)]


def place(conversation: int, *entries: NewEntry) -> None:
    """Append as the product itself does, whatever the kind."""
    with transaction.atomic():
        place_entries(conversation=lock_conversation(conversation), entries=entries)


@pytest.fixture
def mira() -> Who:
    return make_person("mira")


@pytest.fixture
def session(mira: Who) -> int:
    wren, _ = make_agent(make_root(mira), "wren")
    assert wren.conversation is not None
    return wren.conversation


@pytest.fixture
def client(reader: Reader, mira: Who) -> Client:
    return reader(mira)


def answer(*content: dict[str, Any]) -> NewEntry:
    return NewEntry(kind="assistant", model=[{"role": "assistant", "content": list(content)}])


def result(call: str, text: Any, **block: Any) -> NewEntry:
    content = [{"type": "tool_result", "tool_use_id": call, "content": text, **block}]
    return NewEntry(kind="tool_result", model=[{"role": "user", "content": content}])


def call(id: str, name: str = "run_command", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": given or {"command": "pytest"}}


def test_the_newest_page_says_of_how_many(client: Client, mira: Who, session: int) -> None:
    say(mira, session, "begin", *(f"answer {n}" for n in range(1, PAGE + 40)))
    page = _text(client.get(f"/conversations/{session}/"))
    last = PAGE + 41
    assert _seqs(page) == list(range(last - PAGE + 1, last + 1))
    older = _text(client.get(f"/conversations/{session}/entries/?before={last - PAGE + 1}"))
    assert _seqs(older) == list(range(1, last - PAGE + 1))
    assert 'data-do="older"' in page
    assert 'data-do="older"' not in older
    shown = re.search(r"data-shown-from>(\d+)<.*data-shown-to>(\d+)<.*data-total>(\d+)<", page)
    assert shown is not None
    assert shown.groups() == (str(last - PAGE + 1), str(last), str(last))


def test_what_came_since(client: Client, mira: Who, session: int) -> None:
    say(mira, session, "begin", "one", end=False)
    place(session, answer(call("a")))
    assert "no result yet" in _text(client.get(f"/conversations/{session}/"))
    place(session, result("a", "exit 0"), answer({"type": "text", "text": "done"}))
    fresh = _text(client.get(f"/conversations/{session}/entries/?after=3"))
    assert _seqs(fresh) == [3, 5]  # the call again, with the result that is entry 4
    assert "no result yet" not in fresh
    assert 'data-last="5"' in fresh
    assert _seqs(_text(client.get(f"/conversations/{session}/entries/?after=5"))) == []


def test_a_page_never_parts_a_call_from_its_result(client: Client, mira: Who, session: int) -> None:
    place(session, *(answer({"type": "text", "text": f"{n}"}) for n in range(PAGE)))
    place(session, answer(call("a")), result("a", "found it"), *(answer({"type": "text", "text": "x"}),) * (PAGE - 1))
    page = _text(client.get(f"/conversations/{session}/"))
    assert "found it" in page
    assert page.count("no result yet") == 0
    assert PAGE + 1 in _seqs(page)


def test_a_page_around_an_entry(client: Client, mira: Who, session: int) -> None:
    say(mira, session, "begin", *(f"answer {n}" for n in range(1, 300)))
    page = _text(client.get(f"/conversations/{session}/?at=100"))
    assert 100 in _seqs(page)
    assert len(_seqs(page)) == PAGE
    assert 'data-do="newer"' in page


def test_long_text_is_cut_and_said_and_shown_on_demand(client: Client, session: int) -> None:
    end = "the very end"
    place(
        session,
        answer({"type": "text", "text": "word\n\n" * 6_000 + end}, call("a")),
        result("a", "\n".join(f"line {n}" for n in range(1, 101))),
    )
    page = _text(client.get(f"/conversations/{session}/"))
    assert end not in page
    assert re.search(r"Characters 1 to [\d\u202f]+ of 36\u202f012\.", page)
    assert f"line {OUTPUT_LINES}<" in page
    assert "line 100" not in page
    assert "100 lines, 791 characters; the last 60 lines are not shown" in page
    whole = _text(client.get(f"/conversations/{session}/entries/1/"))
    assert end in whole
    assert "line 100" in whole
    assert "not shown" not in whole
    assert PROSE_CHARACTERS < 36_012


def test_calls_are_one_line_each(client: Client, session: int) -> None:
    edit = call("a", "edit_file", path="w.py", old_string="a\nb\nc\n", new_string="a\nB\nc\nd\n")
    place(session, answer(edit, call("b")), result("a", "ok"), result("b", "boom\nmore", is_error=True))
    page = _text(client.get(f"/conversations/{session}/"))
    assert '<span class="plus">+2</span> <span class="minus">−1</span>' in page
    assert '<tr class="del">' in page
    assert "<b>run_command</b> pytest" in page
    assert '<span class="res minus">boom</span>' in page
    assert _seqs(page) == [1]


def test_rules_and_bookkeeping(client: Client, session: int) -> None:
    place(
        session,
        NewEntry(kind="compaction", model=[{"role": "user", "content": "the sum of it"}], head=True),
        NewEntry(kind="turn_end", data={"line": "3 min 20 s"}),
        NewEntry(kind="x.progress", data={"line": "one"}),
        NewEntry(kind="x.progress", data={"line": "two"}),
        NewEntry(kind="claude.error", data={"text": "overloaded"}),
        NewEntry(kind="lineage.branched", data={"branch": 14, "at": 3, "intent": "try it"}),
    )
    page = _text(client.get(f"/conversations/{session}/"))
    assert "summed up in 13 characters" in page
    assert "Turn ended after 3 min 20 s" in page
    assert "2 entries of bookkeeping" in page
    assert "overloaded" in page
    assert '<a class="link" href="/conversations/14/">#14</a> started from entry 3: try it' in page


def test_notes_and_finishes_say_from_whom(client: Client, session: int) -> None:
    place(
        session,
        NewEntry(kind="lineage.note", data={"text": "keep it a week", "source": "operator", "operator": "mira"}),
        NewEntry(kind="lineage.note", data={"text": "look at #3/4", "from": 12, "title": "Retry"}),
        NewEntry(kind="lineage.note", data={"source": "finished", "from": 13, "title": "Tests", "text": "all pass"}),
        NewEntry(kind="lineage.note", data={"source": "main", "from": 1, "position": 9, "text": "Landed a1b2c3d"}),
        NewEntry(kind="lineage.finished", data={"from": 14, "title": "Docs", "text": "done"}),
    )
    page = _text(client.get(f"/conversations/{session}/"))
    assert "Note from mira: keep it a week" in page
    assert '<a class="link" href="/conversations/12/">#12</a> left a note: look at #3/4' in page
    assert '<a class="link" href="/conversations/13/">#13</a> finished: Tests' in page
    assert '<a class="link" href="/roots/1/">#1</a> New in the tally since it last looked, 14 characters' in page
    assert '<a class="link" href="/conversations/14/">#14</a> finished: Docs' in page


def test_text_of_agents_is_never_markup(client: Client, session: int) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    place(
        session,
        answer({"type": "text", "text": evil}, {"type": "thinking", "thinking": evil}, call(evil, evil, command=evil)),
        result(evil, evil),
        NewEntry(kind="x." + "y", data={"line": evil, "text": evil * 9}),
        NewEntry(kind="claude.command", data={"command": evil}),
        NewEntry(kind="lineage.note", data={"text": evil, "operator": evil}),
        NewEntry(kind="user", model=[{"role": "user", "content": evil}], prompt=evil),
    )
    page = _text(client.get(f"/conversations/{session}/"))
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("&lt;script&gt;") >= 8


def test_odd_shapes_are_shown_and_never_an_error(client: Client, session: int) -> None:
    place(
        session,
        NewEntry(kind="assistant", model=[{"role": "assistant", "content": "plain \ud800 text \0"}]),
        NewEntry(kind="assistant", model=[{"role": "assistant", "content": [{"type": "hologram"}, {}]}]),
        NewEntry(kind="assistant", model=[{"role": "assistant", "content": [{"type": "tool_use", "input": "x"}]}]),
        NewEntry(kind="tool_result", model=[{"role": "user", "content": [{"type": "tool_result", "content": 7}]}]),
        NewEntry(kind="assistant", data={"unknown": ["odd"], "aborted": True, "calls": "none", "results": [1]}),
        NewEntry(kind="tool_result", data={"results": [{"id": "z", "patch": [1, {"lines": [2, "+a"]}]}]}),
        NewEntry(kind="lineage.note", data={"sha": 7, "text": ["x"]}),
        NewEntry(kind="lineage.branched", data={"branch": "x"}),
        NewEntry(kind="document.edited", data={"first": 2, "last": 5, "document": 9, "title": "Plan"}),
    )
    page = _text(client.get(f"/conversations/{session}/"))
    assert "A block of type hologram, kept but not shown" in page
    assert "Aborted here" in page
    assert "plain \ufffd" in page
    assert "edited, revisions 2 to 5" in page
    assert _seqs(page) == [1, 2, 3, 5, 6, 7, 8, 9]  # 4 answers the call of 3: neither has an id


def test_pictures_are_served_as_pictures_only(client: Client, session: int) -> None:
    def image(kind: str, data: str = PNG) -> dict[str, Any]:
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}

    place(session, answer(image("image/png"), image("image/svg+xml"), image("text/html")))
    base = f"/conversations/{session}/entries/1/images"
    assert f'src="{base}/0/"' in _text(client.get(f"/conversations/{session}/"))
    served = client.get(f"{base}/0/")
    assert served.content.startswith(b"\x89PNG")
    assert (served["Content-Type"], served["X-Content-Type-Options"]) == ("image/png", "nosniff")
    assert "sandbox" in served["Content-Security-Policy"]
    assert [client.get(f"{base}/{n}/").status_code for n in (1, 2, 3)] == [404, 404, 404]


def test_only_members_read(reader: Reader, mira: Who, session: int) -> None:
    say(mira, session, "a secret plan", "yes")
    stranger = reader(make_person("rui"))
    absent = stranger.get("/conversations/999999/")
    paths = ["", "parts/", "entries/?after=0", "entries/1/", "entries/1/images/0/"]
    for path in paths:
        refused = stranger.get(f"/conversations/{session}/{path}")
        assert refused.status_code == absent.status_code == 404
        assert "secret" not in _text(refused)
    same = stranger.get(f"/conversations/{session}/").context["refusal"].message
    assert absent.context["refusal"].message.replace("999999", "N") == same.replace(str(session), "N")


def test_the_cost_of_a_page_does_not_grow_with_the_history(client: Client, mira: Who, session: int) -> None:
    say(mira, session, "begin", *(f"answer {n}" for n in range(PAGE)))
    client.get(f"/conversations/{session}/")
    with CaptureQueriesContext(
        connection,
    ) as short:
        client.get(f"/conversations/{session}/")
    for _ in range(3):
        say(mira, session, "more", *(f"answer {n}" for n in range(900)))
    with CaptureQueriesContext(connection) as long:
        client.get(f"/conversations/{session}/")
    assert len(long) == len(short)
    assert len(long) <= 30


@pytest.mark.parametrize("query", ["before=x", "after=-1", "before=9" * 20, ""])
def test_odd_numbers_are_refused(client: Client, session: int, query: str) -> None:
    answer = client.get(f"/conversations/{session}/entries/?{query}", headers={"X-Part": "1"})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "invalid"


@pytest.mark.parametrize("models", [[], ["fake-large"]])
def test_without_a_model_it_says_so_where_one_would_be_used(
    reader: Reader, mira: Who, session: int, settings: Settings, models: list[str]
) -> None:
    settings.MODELS = models
    said = "No model is configured, so nobody here answers."
    root = make_root(mira).pk
    assert _text(reader(mira).get(f"/conversations/{root}/")).count(said) == (
        0 if models else 2
    )  # composer, new branch
    # What is sent to a session is answered by its agent; only a branch of it would ask a model.
    assert _text(reader(mira).get(f"/conversations/{session}/")).count(said) == (0 if models else 1)

"""Sessions pushed over HTTP as the Agent SDK's session store gets them: the same as from files, and again changes nothing."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from console.access import Who
from console.models import Role, User
from lineage.actions import pushes
from lineage.actions.imports import raw_line
from lineage.models import Conversation, Entry, Kind, Root, TranscriptConversation, TranscriptFile, TranscriptPiece
from lineage.transcripts.pushing import ENTRIES, digests_of, elements_in, new_among
from tests.factories import make_agent, make_person, make_root
from tests.lineage.transcripts.importing import Stored, copy_samples, import_all, stored
from tests.lineage.transcripts.reading import SAMPLES, Script

pytestmark = pytest.mark.django_db

SESSION = "2e2cb7b6-10da-5411-8cd2-4aa7b569dbd9"
FILES = {
    None: "syn-01-tree.jsonl",
    "subagents/agent-a1b2c3d": "syn-01-tree/subagents/agent-a1b2c3d.jsonl",
    "subagents/agent-e4f5a6b": "syn-01-tree/subagents/agent-e4f5a6b.jsonl",
}


@pytest.fixture
def owner() -> Who:
    return make_person()


@pytest.fixture
def root(owner: Who) -> Root:
    return make_root(owner)


class Pusher:
    """Somebody who pushes with a token."""

    def __init__(self, root: Root, role: Role = Role.OPERATOR) -> None:
        _, secret = make_agent(root, "sdk", role=role)
        self.client = Client(headers={"authorization": f"Bearer {secret}"})

    def send(self, body: Any) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post("/api/transcripts/claude", data, content_type="application/json")

    def push(self, entries: Sequence[Any], subpath: str | None = None, **more: Any) -> dict[str, Any]:
        key = {"project_key": "-home-dev-shop", "session_id": SESSION} | ({"subpath": subpath} if subpath else {})
        answer = self.send({"key": key, "entries": entries, **more})
        assert answer.status_code == 200, answer.content
        return dict(answer.json())


@pytest.fixture
def pusher(root: Root) -> Pusher:
    return Pusher(root)


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLES / "claude" / name).read_bytes().split(b"\n") if line.strip()]


def pushed_lines(subpath: str | None) -> list[dict[str, Any]]:
    """The entries of a sample file as the SDK gives them: what the meta file says is one more, at the end."""
    path = SAMPLES / "claude" / FILES[subpath].replace(".jsonl", ".meta.json")
    meta = [{"type": "agent_metadata", **json.loads(path.read_text())}] if path.exists() else []
    return lines_of(FILES[subpath]) + meta


def without_root(found: dict[str, Stored]) -> list[Any]:
    return [(key, *(getattr(one, name) for name in one.__dataclass_fields__)) for key, one in sorted(found.items())]


def counts() -> tuple[int, ...]:
    return tuple(
        model.objects.count()
        for model in (Conversation, Entry, TranscriptPiece, TranscriptFile, TranscriptConversation)
    )


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_pushed_session_is_what_its_files_would_be(pusher: Pusher, root: Root, tmp_path: Any, size: int) -> None:
    """T1, T2: branches, subagents in subagents, compaction, titles, states; in batches of any size."""
    for subpath in FILES:
        lines = pushed_lines(subpath)
        for start in range(0, len(lines), size):
            pusher.push(lines[start : start + size], subpath)
    pushed = stored()
    assert set(Conversation.objects.exclude(kind=Kind.ROOT).values_list("root", flat=True)) == {root.pk}
    agents = Conversation.objects.filter(kind=Kind.AGENT)
    assert [row.owner_at is not None for row in agents] == [True, True]
    TranscriptConversation.objects.all().delete()
    import_all(copy_samples(tmp_path / "-home-dev-shop", "syn-01-tree"))
    assert without_root(pushed) == without_root(stored())


def test_again_changes_nothing_whole_or_in_parts(pusher: Pusher) -> None:
    for subpath in FILES:
        pusher.push(pushed_lines(subpath), subpath)
    before, numbers = stored(), counts()
    for subpath in FILES:
        lines = pushed_lines(subpath)
        for batch in (lines, lines[:5], lines[1:], lines[-1:]):
            answer = pusher.push(batch, subpath)
            assert (answer["lines"], answer["entries"]) == (0, 0)
            assert answer["conversation"]
    pushes._projects.clear()  # as another process
    assert pusher.push(pushed_lines(None))["lines"] == 0
    assert (stored(), counts()) == (before, numbers)


def test_a_batch_that_overlaps_brings_only_what_is_new(pusher: Pusher) -> None:
    script = Script()
    for number in range(4):
        script.prompt(f"Question {number}.")
        script.answer(f"Answer {number}.")
    assert pusher.push(script.lines[:4])["entries"] == 4
    assert pusher.push(script.lines[2:6]) | {"conversation": 0} == {"conversation": 0, "lines": 2, "entries": 2}
    pushes._projects.clear()
    assert pusher.push(script.lines)["entries"] == 2
    (session,) = Conversation.objects.filter(kind=Kind.SESSION, source="claude")
    assert session.head == 8


def test_a_title_may_come_back(pusher: Pusher) -> None:
    """Lines without a uuid say the same again with a new meaning; only the newest counts as a repeat."""
    script = Script()
    script.prompt("Begin.")
    pusher.push(script.lines)
    for title in ("One", "Two", "One", "One"):
        pusher.push([{"type": "custom-title", "customTitle": title, "sessionId": SESSION}])
    (session,) = Conversation.objects.filter(kind=Kind.SESSION, source="claude")
    assert session.title == "One"
    assert TranscriptFile.objects.get().lines == 4


def test_an_agent_whose_call_comes_later_is_linked_then(pusher: Pusher) -> None:
    main = pushed_lines(None)
    called = next(n for n, line in enumerate(main) if "toolu_4" in json.dumps(line))
    pusher.push(main[:called])
    lines = pushed_lines("subagents/agent-a1b2c3d")
    number = pusher.push(lines, "subagents/agent-a1b2c3d")["conversation"]
    agent = Conversation.objects.get(pk=number)
    assert (agent.kind, agent.owner_at) == (Kind.AGENT, None)
    pusher.push(main[called:])
    agent.refresh_from_db()
    assert (agent.owner_call, agent.owner_at is not None) == ("toolu_4", True)


def test_raw_lines_are_kept_byte_for_byte(pusher: Pusher) -> None:
    """R10: numbers, order of keys, escapes and lone surrogates as they came; only line ends between tokens are spaces."""
    entry = (
        b'{ "type" : "user","uuid":"u1","parentUuid":null,"sessionId":"%s","timestamp":"2026-01-01T00:00:00Z",\n'
        b'"b":1.50,"a":1E2,"message":{"role":"user","content":"\\ud800 \\u0000 caf\\u00e9 \xe2\x80\xa8"}}'
        % SESSION.encode()
    )
    body = b'{"key":{"projectKey":"-p","sessionId":"%s"},"entries":[%s]}' % (SESSION.encode(), entry)
    answer = pusher.send(body)
    assert answer.status_code == 200, answer.content
    assert raw_line(conversation=answer.json()["conversation"], seq=1) == entry.replace(b"\n", b" ")


def test_a_request_id_gives_the_first_answer(pusher: Pusher) -> None:
    """R4: also with another body."""
    script = Script()
    script.prompt("Begin.")
    script.answer("Done.")
    first = pusher.push(script.lines[:1], request_id="r")
    assert pusher.push(script.lines, request_id="r") == first
    assert Entry.objects.filter(conversation=first["conversation"]).count() == 1


def test_projects_and_roots_are_apart(pusher: Pusher, owner: Who) -> None:
    """Two roots may be pushed the same session: each has its own."""
    script = Script()
    script.prompt("Begin.")
    mine = pusher.push(script.lines)["conversation"]
    theirs = Pusher(make_root(owner)).push(script.lines)["conversation"]
    assert mine != theirs
    assert {row.root_id for row in Conversation.objects.filter(pk__in=[mine, theirs])} == set(
        Root.objects.values_list("pk", flat=True)
    )


def test_a_person_says_the_root(owner: Who, root: Root) -> None:
    client = Client()
    client.force_login(User.objects.get(actor=owner.actor))
    script = Script()
    script.prompt("Begin.")
    body = {"key": {"project_key": "-p", "session_id": "s"}, "entries": script.lines}

    def sent(**more: Any) -> Any:
        return client.post("/api/transcripts/claude", json.dumps(body | more), content_type="application/json")

    assert sent().status_code == 422
    assert sent(root=make_root().pk).status_code == 404
    answer = sent(root=root.pk)
    assert answer.status_code == 200
    assert Conversation.objects.get(pk=answer.json()["conversation"]).root_id == root.pk


@pytest.mark.parametrize("role", [Role.AGENT, Role.VIEWER])
def test_agents_and_viewers_push_nothing(root: Root, role: Role) -> None:
    script = Script()
    script.prompt("Begin.")
    key = {"project_key": "-p", "session_id": "s"}
    answer = Pusher(root, role).send({"key": key, "entries": script.lines})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "forbidden"
    assert not TranscriptFile.objects.exists()
    assert Pusher(root).send({"key": key, "entries": script.lines, "root": make_root().pk}).status_code == 404


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ({"session_id": "s"}, "key.project_key"),
        ({"project_key": "p"}, "key.session_id"),
        ({"project_key": "p/q", "session_id": "s"}, "project_key"),
        ({"project_key": "..", "session_id": "s"}, "project_key"),
        ({"project_key": "p" * 201, "session_id": "s"}, "project_key"),
        ({"project_key": "p", "session_id": "a\\b"}, "session_id"),
        ({"project_key": "p", "session_id": "s\n"}, "session_id"),
        ({"project_key": "p", "session_id": "s", "subpath": "../x"}, "subpath"),
        ({"project_key": "p", "session_id": "s", "subpath": "/x"}, "subpath"),
        ({"project_key": "p", "session_id": "s", "subpath": "x" * 401}, "subpath"),
        ({"project_key": 5, "session_id": "s"}, "key.project_key"),
    ],
)
def test_keys_that_name_no_session(pusher: Pusher, key: dict[str, Any], field: str) -> None:
    answer = pusher.send({"key": key, "entries": [{"type": "mode"}]})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == field
    assert not TranscriptFile.objects.exists()


@pytest.mark.parametrize("entry", [5, None, "text", [], True])
def test_what_is_no_line_refuses_the_batch(pusher: Pusher, entry: Any) -> None:
    key = {"project_key": "p", "session_id": "s"}
    answer = pusher.send({"key": key, "entries": [{"type": "mode"}, entry]})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "entries[1]"
    assert not TranscriptFile.objects.exists()


def test_limits_are_named(pusher: Pusher, settings: Settings) -> None:
    key = {"project_key": "p", "session_id": "s"}
    answer = pusher.send({"key": key, "entries": [{"type": "mode"}] * (ENTRIES + 1)})
    assert answer.status_code == 413
    assert answer.json()["error"] == {
        "code": "too_many_entries",
        "message": "There are 10001 entries; at most 10000 are taken at once. Send them in parts.",
        "limit": ENTRIES,
        "actual": ENTRIES + 1,
    }
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    answer = pusher.send({"key": key, "entries": [{"type": "mode", "text": "x" * 1000}]})
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "body_too_large"
    assert not TranscriptFile.objects.exists()


def test_nothing_is_nothing(pusher: Pusher) -> None:
    assert pusher.push([]) == {"conversation": None, "lines": 0, "entries": 0}
    assert not TranscriptFile.objects.exists()


def test_a_failure_leaves_nothing_half_read(pusher: Pusher, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader that got ahead of the database begins anew."""
    script = Script()
    script.prompt("Begin.")
    script.answer("Done.")
    pusher.push(script.lines[:1])
    pusher.client.raise_request_exception = False
    with monkeypatch.context() as patched:
        patched.setattr(pushes, "remember", lambda **_: 1 / 0)
        key = {"project_key": "-home-dev-shop", "session_id": SESSION}
        assert pusher.send({"key": key, "entries": script.lines}).status_code == 500
    assert pusher.push(script.lines)["entries"] == 1


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_a_repeat_of_what_is_kept_with_a_uuid_is_never_new(kinds: list[int], start: int, length: int) -> None:
    lines = [b'{"uuid":"%d"}' % kind if kind else b'{"type":"mode"}' for kind in kinds]
    batch = lines[start : start + length]
    fresh = new_among(batch, digests_of(lines))
    assert all(b"uuid" not in line for line in fresh)
    if batch == lines[-len(batch) :]:
        assert fresh == []
    assert new_among(batch, b"") == batch


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\[]{},: \n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('e"\\:,[', max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["key", "entries", "x"]), values, max_size=3), st.sampled_from([None, 1]))
def test_elements_are_found_in_any_json(body: dict[str, Any], indent: int | None) -> None:
    found = elements_in(json.dumps(body, indent=indent).encode(), b"entries")
    listed = body.get("entries")
    assert [json.loads(element) for element in found] == (listed if isinstance(listed, list) else [])

"""Edits over `/live/` (CONTRACT, D10, D11, R4)."""

import asyncio
import json
import threading
from typing import Any

import pytest

from console.access import Who
from console.crossing import crossed
from console.models import Role
from documents import gathering
from documents.actions import edit_together
from documents.models import Document
from documents.texts import text_at
from lineage.actions.tokens import make_token
from lineage.models import Conversation, Root
from tests.console.live.conftest import Connect
from tests.console.live.peers import Peer
from tests.factories import make_agent, make_document, make_fork, make_root, say

type Shared = tuple[Who, str, int]


@pytest.fixture
def root(transactional_db: None) -> Root:
    return make_root()


@pytest.fixture
def shared(root: Root) -> Shared:
    who, secret = make_agent(root, "wren")
    return who, secret, make_document(who, root.pk, "one\ntwo\ntwo\n").pk


def edit(old: str, new: str) -> dict[str, str]:
    return {"old_string": old, "new_string": new}


async def send(peer: Peer, document: int, request_id: str | None, *edits: dict[str, str]) -> None:
    await peer.say(op="edit", document=document, request_id=request_id, edits=list(edits))


async def answer(peer: Peer, request_id: str | None) -> dict[str, Any]:
    return await peer.hear(
        wanted=lambda f: f["type"] in {"accepted", "refused"} and f.get("request_id", 0) == request_id
    )


def text_of(document: int) -> str:
    row = Document.objects.get(pk=document)
    return text_at(row, row.revision)


async def test_an_edit_is_answered_after_its_commit_and_comes_to_its_author_too(
    shared: Shared, connect: Connect
) -> None:
    who, secret, document = shared
    peer = await connect(secret)
    await peer.subscribe(f"document:{document}")
    await send(peer, document, "a", edit("one", "1"))
    assert await answer(peer, "a") == {"type": "accepted", "request_id": "a", "document": document, "revision": 1}
    assert await crossed(text_of, document) == "1\ntwo\ntwo\n"
    frames = [frame for frame in peer.heard if frame["type"] == "events"] or [await peer.hear_type("events")]
    assert frames[0]["events"] == [
        {
            "seq": 1,
            "kind": "edits",
            "author": {"id": who.actor, "name": "wren", "kind": "agent"},
            "request_id": "a",
            "edits": [edit("one", "1")],
        }
    ]


async def test_a_refusal_says_why_where_and_at_which_revision(shared: Shared, connect: Connect) -> None:
    _, secret, document = shared
    peer = await connect(secret)
    await send(peer, document, "a", edit("one", "1"))
    await send(peer, document, "b", edit("1", "one"), edit("two", "2"))
    refused = await answer(peer, "b")
    assert (refused["type"], refused["document"], refused["revision"]) == ("refused", document, 1)
    told = {key: refused["error"][key] for key in ("code", "ordinal", "matches", "lines")}
    assert told == {"code": "ambiguous", "ordinal": 2, "matches": 2, "lines": [2, 3]}
    assert await crossed(text_of, document) == "1\ntwo\ntwo\n"


async def test_watchers_hear_of_an_agents_refusal(root: Root, shared: Shared, connect: Connect) -> None:
    who, secret, document = shared
    operator, key = await crossed(make_agent, root, "ana", role=Role.OPERATOR)
    watcher, agent, person = await connect(key), await connect(secret), await connect(key)
    await watcher.subscribe(f"document:{document}")
    await send(person, document, "a", edit("absent", "1"))  # people see their own, and nobody else does
    await answer(person, "a")
    await send(agent, document, "b", edit("tow", "1"), edit("x", "y"))
    refused = await answer(agent, "b")
    told = await watcher.hear_type("refusal")
    assert told["author"] == {"id": who.actor, "name": "wren", "kind": "agent"}
    assert (told["document"], told["edits"], told["revision"]) == (document, 2, 0)
    assert told["error"] == refused["error"]
    assert told["error"]["nearest"] == {"line": 2, "text": "two", "cut": False}
    assert [frame["author"]["id"] for frame in watcher.heard if frame["type"] == "refusal"] != [operator.actor]


async def test_the_same_id_again_gives_the_same_answer(shared: Shared, connect: Connect) -> None:
    _, secret, document = shared
    peer = await connect(secret)
    await send(peer, document, "a", edit("one", "1"))
    await send(peer, document, "a", edit("1", "first"))
    assert (await answer(peer, "a"))["revision"] == 1
    assert (await answer(peer, "a"))["revision"] == 1
    assert await crossed(text_of, document) == "1\ntwo\ntwo\n"


async def test_edits_that_do_not_wait_are_recorded_in_their_order(shared: Shared, connect: Connect) -> None:
    _, secret, document = shared
    peer = await connect(secret)
    for n in range(50):
        await send(peer, document, f"r{n}", edit(f"{n - 1}\n" if n else "one\n", f"{n}\n"))
    heard = [await answer(peer, f"r{n}") for n in range(50)]
    assert [frame["revision"] for frame in heard] == list(range(1, 51))
    assert await crossed(text_of, document) == "49\ntwo\ntwo\n"


async def test_what_no_document_can_hold_is_refused_and_not_repeated(shared: Shared, connect: Connect) -> None:
    _, secret, document = shared
    peer = await connect(secret)
    await peer.say_raw(
        f'{{"op":"edit","document":{document},"request_id":"a","edits":'
        '[{"old_string":"one","new_string":"\\ud83d"}]}'
    )
    error = (await answer(peer, "a"))["error"]
    assert (error["code"], error["ordinal"], error["field"]) == ("invalid_text", 1, "new_string")
    assert "\\ud83d" not in str(error)
    await send(peer, document, "b", edit("one", "1"))
    assert (await answer(peer, "b"))["type"] == "accepted"


async def test_one_without_an_id_is_answered_too(shared: Shared, connect: Connect) -> None:
    _, secret, document = shared
    peer = await connect(secret)
    await send(peer, document, None, edit("one", "1"))
    assert (await answer(peer, None))["revision"] == 1


async def test_a_broken_edit_is_refused_under_its_id(shared: Shared, connect: Connect) -> None:
    """Whoever sent it waits for the answer to that id."""
    _, secret, document = shared
    peer = await connect(secret)
    whole: dict[str, Any] = {"document": document, "request_id": "a", "edits": [edit("one", "1")]}
    shapes: list[Any] = [None, "x", [{"old_string": "one"}], [{"old_string": 1, "new_string": ""}], [7]]
    changes: list[dict[str, Any]] = [{"edits": shape} for shape in shapes]
    for broken in [*changes, {"document": "7"}, {"document": None}]:
        await peer.say(op="edit", **(whole | broken))
        refused = await answer(peer, "a")
        assert (refused["type"], refused["error"]["code"], refused["revision"]) == ("refused", "invalid", None)
    assert await crossed(text_of, document) == "one\ntwo\ntwo\n"


async def test_an_id_that_no_text_can_hold_is_not_repeated(shared: Shared, connect: Connect) -> None:
    _, secret, document = shared
    peer = await connect(secret)
    await send(peer, document, "\udfff", edit("one", "1"))
    refused = await peer.hear_type("refused")
    assert (refused["error"]["code"], refused["error"]["field"]) == ("invalid", "request_id")
    assert "\\ud" not in json.dumps(peer.heard)


async def test_a_forks_first_edit_names_the_copy_it_made(root: Root, shared: Shared, connect: Connect) -> None:
    """D9: a token looks from its own conversation."""

    def forked() -> tuple[str, int]:
        who, _ = make_agent(root)
        assert who.conversation is not None
        document = make_document(who, who.conversation, "one\n").pk
        seqs = say(who, who.conversation, "go")
        fork = make_fork(Conversation.objects.get(pk=who.conversation), seqs[-1])
        return make_token(who=None, name="fork", root=root.pk, conversation=fork.pk).secret, document

    secret, document = await crossed(forked)
    peer = await connect(secret)
    await send(peer, document, "a", edit("one", "1"))
    accepted = await answer(peer, "a")
    assert (accepted["type"], accepted["document"]) == ("accepted", document)
    assert await crossed(text_of, accepted["copy"]) == "1\n"
    assert await crossed(text_of, document) == "one\n"


async def test_a_slow_document_holds_up_nothing_else_of_the_socket(
    root: Root, shared: Shared, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret, document = shared
    gate = threading.Event()

    def slow(**asked: Any) -> Any:
        assert gate.wait(10)
        return edit_together(**asked)

    monkeypatch.setattr(gathering, "edit_together", slow)
    peer = await connect(secret)
    await send(peer, document, "a", edit("one", "1"))
    assert (await peer.subscribe(f"conversation:{root.pk}"))["type"] == "snapshot"
    assert not [frame for frame in peer.heard if frame["type"] == "accepted"]
    gate.set()
    assert (await answer(peer, "a"))["type"] == "accepted"


async def test_an_edit_of_one_who_has_gone_is_recorded(shared: Shared, connect: Connect) -> None:
    _, secret, document = shared
    watcher, author = await connect(secret), await connect(secret)
    await watcher.subscribe(f"document:{document}")
    await send(author, document, "a", edit("one", "1"))
    await author.leave()
    assert (await watcher.hear_type("events"))["events"][0]["request_id"] == "a"


async def test_who_may_only_read_is_refused(root: Root, shared: Shared, connect: Connect) -> None:
    _, secret = await crossed(make_agent, root, "ana", role=Role.VIEWER)
    peer = await connect(secret)
    await send(peer, shared[2], "a", edit("one", "1"))
    assert (await answer(peer, "a"))["error"]["code"] == "forbidden"
    await send(peer, 999_999, "b", edit("one", "1"))
    assert (await answer(peer, "b"))["error"]["code"] == "not_found"


async def test_too_much_that_waits_is_answered_not_now(
    shared: Shared, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret, document = shared
    peer = await connect(secret)
    monkeypatch.setattr(gathering, "QUEUE_CHARACTERS", 0)
    await send(peer, document, "a", edit("one", "1"))
    assert (await answer(peer, "a"))["error"]["code"] == "busy"
    monkeypatch.undo()
    await send(peer, document, "a", edit("one", "1"))
    assert (await answer(peer, "a"))["type"] == "accepted"


async def test_an_error_of_ours_is_answered_not_now(
    shared: Shared, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret, document = shared
    peer = await connect(secret)

    def broken(**asked: Any) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(gathering, "edit_together", broken)
    await send(peer, document, "a", edit("one", "1"))
    assert (await answer(peer, "a"))["error"]["code"] == "unavailable"
    monkeypatch.undo()
    await send(peer, document, "a", edit("one", "1"))
    assert (await answer(peer, "a"))["type"] == "accepted"


async def test_writers_on_several_sockets_share_one_text(shared: Shared, connect: Connect) -> None:
    _, secret, document = shared
    peers = [await connect(secret) for _ in range(4)]

    async def write(peer: Peer, name: int) -> None:
        for n in range(10):
            await send(peer, document, f"{name}-{n}", edit("one\n", f"one\n{name}.{n}\n"))
            assert (await answer(peer, f"{name}-{n}"))["type"] == "accepted"

    await asyncio.gather(*(write(peer, name) for name, peer in enumerate(peers)))
    lines = (await crossed(text_of, document)).split("\n")
    assert sorted(lines[1:41]) == sorted(f"{name}.{n}" for name in range(4) for n in range(10))

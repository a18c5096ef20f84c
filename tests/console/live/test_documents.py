"""The stream of a document over `/live/` (CONTRACT, WebSocket; R3, D11)."""

import pytest

from console.access import Who
from console.crossing import crossed
from documents.actions.documents import create_document, rename_document
from documents.actions.editing import edit_document
from documents.edits import Edit, apply_edits
from documents.models import Document
from documents.texts import text_at
from tests.console.live.conftest import Connect
from tests.console.live.peers import Peer, seqs
from tests.factories import make_agent, make_root

type Shared = tuple[Who, str, int]


@pytest.fixture
def shared(transactional_db: None) -> Shared:
    """An agent that may write, its secret, and a document of its root."""
    who, secret = make_agent(make_root(), "wren")
    assert who.root is not None
    return who, secret, create_document(who=who, conversation=who.root, title="Retries", text="one\ntwo\n").pk


async def edit(shared: Shared, old: str, new: str, request_id: str | None = None) -> int:
    who, _, document = shared
    edits = [Edit(old_string=old, new_string=new)]
    accepted = await crossed(edit_document, who=who, document=document, edits=edits, request_id=request_id)
    return accepted.revision


async def hear_up_to(peer: Peer, revision: int) -> list[dict[str, object]]:
    heard: list[dict[str, object]] = []
    while not heard or heard[-1]["seq"] != revision:
        heard += (await peer.hear_type("events"))["events"]
    return heard


async def test_it_starts_with_the_text_and_goes_on_with_batches(shared: Shared, connect: Connect) -> None:
    await edit(shared, "one", "1")
    peer = await connect(shared[1])
    stream = f"document:{shared[2]}"
    snapshot = await peer.subscribe(stream)
    assert snapshot == {
        "type": "snapshot",
        "stream": stream,
        "seq": 1,
        "state": {"text": "1\ntwo\n", "title": "Retries"},
    }
    await edit(shared, "two", "2", "r-2")
    frame = await peer.hear_type("events")
    assert frame["stream"] == stream
    assert frame["events"] == [
        {
            "seq": 2,
            "kind": "edits",
            "author": {"id": shared[0].actor, "name": "wren", "kind": "agent"},
            "request_id": "r-2",
            "edits": [{"old_string": "two", "new_string": "2"}],
        }
    ]


async def test_after_is_answered_with_batches(shared: Shared, connect: Connect) -> None:
    for number in range(4):
        await edit(shared, "two", f"{number} two")
    peer = await connect(shared[1])
    frame = await peer.subscribe(f"document:{shared[2]}", after=2)
    assert (frame["type"], seqs(frame)) == ("events", [3, 4])
    await peer.hear_type("state")
    assert (await peer.subscribe(f"document:{shared[2]}", after=4))["type"] == "state"
    assert (await peer.subscribe(f"document:{shared[2]}", after=5))["type"] == "snapshot"


async def test_a_new_title_is_a_state(shared: Shared, connect: Connect) -> None:
    peer = await connect(shared[1])
    await peer.subscribe(f"document:{shared[2]}")
    await crossed(rename_document, who=shared[0], document=shared[2], title="Backoff")
    frame = await peer.hear_type("state")
    assert (frame["version"], frame["state"]) == (1, {"title": "Backoff"})


async def test_text_before_plus_batches_is_the_text_read_afresh(shared: Shared, connect: Connect) -> None:
    """STYLE 24, over the socket; agents leave entries, and the events of both streams stay apart."""
    peer = await connect(shared[1])
    text = (await peer.subscribe(f"document:{shared[2]}"))["state"]["text"]
    await peer.subscribe(f"conversation:{shared[0].conversation}")
    for number in range(70):  # over a snapshot's boundary
        await edit(shared, "two", f"{number}\ntwo")
    while "69\ntwo" not in text:
        frame = await peer.hear_type("events", f"document:{shared[2]}")
        for event in frame["events"]:
            text = apply_edits(text, [Edit(**each) for each in event["edits"]])

    def afresh() -> str:
        row = Document.objects.get(pk=shared[2])
        return text_at(row, row.revision)

    assert await crossed(afresh) == text
    noted = [
        seq for f in peer.heard if f["type"] == "events" and f["stream"] != f"document:{shared[2]}" for seq in seqs(f)
    ]
    assert noted == list(range(1, len(noted) + 1))


async def test_documents_of_others_are_not_found(shared: Shared, connect: Connect) -> None:
    _, secret = await crossed(make_agent, await crossed(make_root))
    peer = await connect(secret)
    for document in (shared[2], 999_999):
        frame = await peer.subscribe(f"document:{document}")
        assert (frame["type"], frame["error"]["code"]) == ("error", "not_found")

"""L24: an agent that waits at its inbox is woken by what happens, and not by looking again."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient

from console.crossing import crossed
from console.live import doorbell as doorbells
from console.live.doorbell import doorbell
from lineage.actions.branches import start_branch
from lineage.actions.notes import leave_note
from tests.factories import make_agent, make_person, make_root

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def bell(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[doorbells.Doorbell]:
    """The loop's doorbell, which never looks by itself."""
    monkeypatch.setattr(doorbells, "LOOK_S", 60.0)
    monkeypatch.setattr(doorbells, "LOOK_WITHOUT_VALKEY_S", 60.0)
    found = doorbell()
    yield found
    await found.stop()
    await sync_to_async(connections.close_all)()  # of the thread on which Django asked who calls


def ask(secret: str, conversation: int | None, wait: float) -> asyncio.Task[Any]:
    path = f"/api/conversations/{conversation}/inbox?wait={wait}"
    return asyncio.create_task(AsyncClient().get(path, headers={"Authorization": f"Bearer {secret}"}))


def told(answer: Any) -> Any:
    assert answer.status_code == 200, answer.content
    return answer.json()


async def waiting(bell: doorbells.Doorbell, stream: str, asking: asyncio.Task[Any]) -> None:
    """Until a request waits at the stream, and Valkey would tell it."""
    while stream not in bell.waiting or bell.relay.is_away:
        assert not asking.done(), asking.result()
        await asyncio.sleep(0.01)
    await bell.relay.listen(stream)


async def test_a_note_ends_the_wait(bell: doorbells.Doorbell) -> None:
    root = await crossed(make_root)
    wren, secret = await crossed(make_agent, root)
    finch, _ = await crossed(make_agent, root, "finch")
    asking = ask(secret, wren.conversation, 50)
    await waiting(bell, f"conversation:{wren.conversation}", asking)
    await crossed(leave_note, who=finch, to=wren.conversation or 0, text="Mind the cents.")
    answer = told(await asking)
    assert [item["text"] for item in answer["items"]] == [f"Note from #{finch.conversation} (@finch): Mind the cents."]


async def test_news_of_the_tally_ends_the_wait(bell: doorbells.Doorbell) -> None:
    mira = await crossed(make_person)
    root = await crossed(make_root, mira)
    await crossed(start_branch, who=mira, source=root.pk, prompt="First.")
    wren, secret = await crossed(make_agent, root)
    asking = ask(secret, wren.conversation, 50)
    await waiting(bell, f"conversation:{root.pk}", asking)
    await crossed(start_branch, who=mira, source=root.pk, prompt="Second.")
    answer = told(await asking)
    assert "Second." in answer["catch_up"]["text"]
    assert answer["items"] == []


async def test_without_anything_it_ends_when_the_time_is_over(bell: doorbells.Doorbell) -> None:
    root = await crossed(make_root)
    wren, secret = await crossed(make_agent, root)
    answer = told(await ask(secret, wren.conversation, 0.2))
    assert answer == {"items": [], "next": None, "catch_up": None, "more": 0, "text": ""}

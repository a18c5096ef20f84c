"""What an SDK pushes is seen at once (T3)."""

import json
from typing import Any

from django.test import Client

from console.crossing import crossed
from console.models import Role
from tests.console.live.conftest import Connect
from tests.console.live.peers import seqs
from tests.factories import make_agent, make_root
from tests.lineage.transcripts.reading import Script


async def test_pushed_lines_are_shown_live(transactional_db: None, connect: Connect) -> None:
    root = await crossed(make_root)
    _, secret = await crossed(make_agent, root, "sdk", role=Role.OPERATOR)
    client = Client(headers={"authorization": f"Bearer {secret}"})

    def push(lines: list[dict[str, Any]]) -> int:
        body = {"key": {"project_key": "-p", "session_id": "s"}, "entries": lines}
        answer = client.post("/api/transcripts/claude", json.dumps(body), content_type="application/json")
        assert answer.status_code == 200, answer.content
        return int(answer.json()["conversation"])

    script = Script()
    script.prompt("Cap the schedule")
    number = await crossed(push, script.lines)
    peer = await connect(secret)
    snapshot = await peer.subscribe(f"conversation:{number}")
    assert snapshot["state"]["total"] == 1
    script.answer("Capped.")
    await crossed(push, script.lines)
    events = await peer.hear_type("events")
    assert (events["stream"], seqs(events)) == (f"conversation:{number}", [2])
    assert "Capped." in str(events["events"][0]["model"])

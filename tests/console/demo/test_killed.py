"""L10: the demo's agent goes on wherever its worker ended, and its edit takes place once."""

from pathlib import Path

import pytest

from console.demo import acting
from console.demo.loading import load_demo
from lineage.actions.approvals import decide_approval
from lineage.models import Approval, Conversation, Entry, State, Task, TaskStatus
from lineage.tasks.boundaries import EXIT_STATUS, POINTS
from tests.factories import make_person
from tests.lineage.test_killed import Workers, check_streams, workers

__all__ = ["workers"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)

BOUNDARIES = [f"demo_run:{phase}:{point}" for phase in ("say", "gather") for point in POINTS]


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_at_every_boundary(tmp_path: Path, workers: Workers, boundary: str) -> None:
    demo = load_demo(tmp_path)
    assert workers.run(boundary) == EXIT_STATUS
    Task.objects.filter(status=TaskStatus.RUNNING).update(lease_until=Task.objects.earliest("created").created)
    assert workers.run() == 0
    assert workers.run() == 0
    branch = Conversation.objects.get(root=demo.root, title=acting.TITLE)
    waiting = Approval.objects.get(conversation=branch)
    decide_approval(who=make_person("newcomer", superuser=True), approval=waiting.pk, decision="approve")
    assert workers.run() == 0
    said = Entry.objects.filter(conversation=branch, kind="assistant", outcome="").count()
    assert (said, Conversation.objects.get(pk=branch.pk).state) == (3, State.IDLE)
    assert (tmp_path / "parcels" / "README.md").read_text().count("## Webhooks") == 1
    check_streams()

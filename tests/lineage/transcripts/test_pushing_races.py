"""Two pushers at once, in one process and in two: nothing comes twice, and nothing is lost (T2)."""

from collections.abc import Callable

import msgspec
import pytest

from console.access import Who
from lineage.actions import pushes
from lineage.actions.pushes import push_entries
from lineage.models import Conversation, Entry, Kind, TranscriptFile
from lineage.transcripts.pushing import SessionKey
from tests.factories import make_person, make_root
from tests.lineage.transcripts.reading import Script
from tests.races import together

KEY = SessionKey(project_key="-home-dev-shop", session_id="s")
BATCH = 7


def lines() -> list[bytes]:
    script = Script()
    for number in range(20):
        script.prompt(f"Question {number}.")
        script.answer(f"Answer {number}.")
    return [msgspec.json.encode(line) for line in script.lines]


def pusher(who: Who, root: int) -> Callable[[], int]:
    """Pushes all of it in batches; answers how many entries it brought."""

    def push() -> int:
        brought = 0
        for start in range(0, len(lines()), BATCH):
            answer = push_entries(who=who, key=KEY, entries=lines()[start : start + BATCH], root=root)
            brought += answer["entries"] or 0
        return brought

    return push


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("processes", ["one", "several"])
def test_pushers_at_once_bring_each_line_once(processes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if processes == "several":  # each call knows only what the database says
        known = pushes._project

        def known_to_nobody(path: str) -> pushes._Project:
            return pushes._Project(known(path).opened)

        monkeypatch.setattr(pushes, "PROJECTS", 0)
        monkeypatch.setattr(pushes, "_project", known_to_nobody)
    owner = make_person()
    root = make_root(owner)
    brought = together(*[pusher(owner, root.pk)] * 3)
    assert [one for one in brought if isinstance(one, Exception)] == []
    (session,) = Conversation.objects.filter(kind=Kind.SESSION)
    assert sum(one for one in brought if isinstance(one, int)) == session.head == len(lines())
    prompts = Entry.objects.filter(conversation=session, kind="user").order_by("seq").values_list("prompt", flat=True)
    assert list(prompts) == [f"Question {number}." for number in range(20)]
    assert TranscriptFile.objects.get().lines == len(lines())

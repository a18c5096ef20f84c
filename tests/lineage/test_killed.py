"""L10: workers that end without warning at every boundary of every kind; Valkey that is gone between commit and hint."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, transaction

from console.access import Who
from console.clock import moved
from documents.attachments.access import read_attachment
from documents.attachments.storing import attachments_folder
from documents.models import Attachment
from lineage.actions.attachments import upload_attachment
from lineage.actions.branches import start_branch
from lineage.actions.entries import lock_conversation
from lineage.actions.landings import NewLanding, record_landing
from lineage.actions.notify import request_notify
from lineage.actions.submissions import submit
from lineage.asking import Asker, asking
from lineage.models import (
    Conversation,
    Delivered,
    Entry,
    Memory,
    MemoryChange,
    MemoryProposal,
    Note,
    OpenAbstract,
    Root,
    Submission,
    SubmissionType,
    Task,
    TaskStatus,
)
from lineage.tasks import nudges
from lineage.tasks.boundaries import EXIT_STATUS, POINTS
from lineage.tasks.claiming import LEASE
from lineage.tasks.definitions import known_kinds
from lineage.tasks.kinds.summarise import summarise_later
from lineage.tasks.sweeping import sweep_tasks
from tests.factories import make_person, make_root, say
from tests.lineage.agent import test_killed as with_a_model
from tests.lineage.kinds import GENERATION, answer
from tests.lineage.working import kind_in_place, work

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]


class Workers:
    """Forks a worker per order, with a boundary at which it ends."""

    def __init__(self) -> None:
        environment = {**os.environ, "TEST_DATABASE": str(connection.settings_dict["NAME"])}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.lineage.worker_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**environment, "DJANGO_SETTINGS_MODULE": "console.settings", "CONSOLE_DATA": str(settings.DATA_DIR)},
        )
        assert self._line() == "ready"

    def run(self, exit_at: str = "") -> int:
        """Run what is due; answers the worker's exit status."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"exit_at": exit_at}) + "\n")
        self.process.stdin.flush()
        return int(json.loads(self._line()))

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture(scope="module")
def workers(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[Workers]:
    found = Workers()
    yield found
    found.process.communicate()


@pytest.fixture
def mira() -> Who:
    return make_person()


@pytest.fixture
def tally(mira: Who) -> Root:
    root = make_root(mira)
    start_branch(who=mira, source=root.pk, prompt="Round the tax.")
    work()
    root.refresh_from_db()
    return root


def branch_of(root: Root) -> int:
    return Conversation.objects.filter(root=root, kind="branch").order_by("pk")[0].pk


def landing(at: int = 1) -> NewLanding:
    return NewLanding(
        at=at, sha="0" * 40, base="1" * 40, target="main", commits=[], paths=["a.py"], divergence="", title="Rounding"
    )


# For each kind: what is done before, and what must be there exactly once afterwards.


def prepare_prompt(who: Who, tally: Root) -> Callable[[], None]:
    with kind_in_place(GENERATION):
        number = start_branch(who=who, source=tally.pk, prompt="Show the total.")

    def check() -> None:
        own = Entry.objects.filter(conversation=number).order_by("seq")
        kinds = list(own.exclude(kind="lineage.note").values_list("kind", flat=True))
        assert kinds == ["user", "assistant"]
        assert [s.status for s in Submission.objects.filter(conversation=number)] == ["done"]

    return check


def prepare_generation(who: Who, tally: Root) -> Callable[[], None]:
    number = branch_of(tally)
    with kind_in_place(GENERATION):
        asked = submit(who=who, conversation=number, type=SubmissionType.INPUT, content="Go on.")
        later = submit(who=who, conversation=number, type=SubmissionType.INPUT, content="And on.")

    def check() -> None:
        texts = [e.model for e in Entry.objects.filter(conversation=number, kind="assistant").order_by("seq")]
        assert len(texts) == 2
        assert {Submission.objects.get(pk=s["id"]).status for s in (asked, later)} == {"done"}

    return check


def prepare_notify(who: Who, tally: Root) -> Callable[[], None]:
    target = branch_of(tally)
    answered = say(who, target, "Go on.", "Done.")[1]
    callers = [start_branch(who=who, source=tally.pk, prompt=f"Wait {n}.") for n in range(2)]
    work()
    for caller in callers:
        request_notify(who=who, caller=caller, target=target, wake=False)

    def check() -> None:
        for caller in callers:
            assert Note.objects.filter(submission__conversation=caller, source="finished").count() == 1
            told = Entry.objects.filter(conversation=caller, kind="lineage.note", data__contains='"finished"')
            assert told.count() == 1
            assert Delivered.objects.get(caller=caller).answer == answered

    return check


def prepare_landing_note(who: Who, tally: Root) -> Callable[[], None]:
    root = make_root(who)
    say(who, root.pk, "Where?", "There.")
    number = start_branch(who=who, source=root.pk, prompt="Round.")
    work()
    record_landing(who=who, conversation=number, new=landing())

    def check() -> None:
        assert Entry.objects.filter(conversation=root.pk, kind="lineage.note").count() == 1
        assert Note.objects.filter(submission__conversation=root.pk, source="lander").count() == 1

    return check


def prepare_memorize(who: Who, tally: Root) -> Callable[[], None]:
    record_landing(who=who, conversation=branch_of(tally), new=landing())

    def check() -> None:
        assert Memory.objects.filter(root=tally).count() == 1
        assert MemoryChange.objects.filter(root=tally).count() == 1
        assert not MemoryProposal.objects.exists()

    return check


def prepare_summarise(who: Who, tally: Root) -> Callable[[], None]:
    number = branch_of(tally)
    with asking(Asker(configured=lambda row: True, ask=answer)), transaction.atomic():
        assert summarise_later(conversation=lock_conversation(number)) is not None

    def check() -> None:
        assert Entry.objects.filter(conversation=tally.pk, kind="lineage.abstract").count() == 1
        assert OpenAbstract.objects.get(conversation=number).text == "It stands well."
        assert Conversation.objects.get(pk=number).title == "Standing"

    return check


def prepare_extract(who: Who, tally: Root) -> Callable[[], None]:
    number = branch_of(tally)
    made = upload_attachment(who=who, conversation=number, filename="plan.md", chunks=[b"# Plan\n"])
    before = Conversation.objects.get(pk=number).state_version

    def check() -> None:
        row = Attachment.objects.get(pk=made.pk)
        assert (row.status, row.chars) == ("extracted", 7)
        assert read_attachment(who=who, name=made.name).text == "# Plan\n"
        assert Conversation.objects.get(pk=number).state_version == before + 1
        assert {path.name for path in attachments_folder().glob(f"*{made.name}*")} == {
            made.name,
            f"{made.name}.extracted",
        }

    return check


KINDS = {
    "extract": (prepare_extract, ["extract"]),
    "prompt": (prepare_prompt, ["deliver"]),
    "generation": (prepare_generation, ["think", "write"]),
    "notify": (prepare_notify, ["wait"]),
    "landing-note": (prepare_landing_note, ["deliver"]),
    "memorize": (prepare_memorize, ["propose", "write"]),
    "summarise": (prepare_summarise, ["ask", "write"]),
}
BOUNDARIES = [f"{kind}:{phase}:{point}" for kind, (_, phases) in KINDS.items() for phase in phases for point in POINTS]


def test_every_phase_of_every_kind_is_ended_at_every_boundary() -> None:
    """A new kind or phase comes with a test of its boundaries, here or beside what it needs."""
    from tests.console.demo import test_killed as of_the_demo  # which imports the workers from here

    found = {f"{kind.kind}:{phase}:{point}" for kind in known_kinds() for phase in kind.phases for point in POINTS}
    tested = {*BOUNDARIES, *with_a_model.BOUNDARIES, *with_a_model.OF_A_CHILD, *of_the_demo.BOUNDARIES}
    assert found - tested == set()


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_worker_that_ends_at_a_boundary_leaves_each_effect_once(
    mira: Who, tally: Root, workers: Workers, boundary: str
) -> None:
    prepare, _ = KINDS[boundary.split(":")[0]]
    check = prepare(mira, tally)
    assert workers.run(boundary) == EXIT_STATUS
    Task.objects.filter(status=TaskStatus.RUNNING).update(lease_until=Task.objects.earliest("created").created)
    assert workers.run() == 0
    assert workers.run() == 0
    check()
    assert not Task.objects.exclude(status=TaskStatus.TERMINAL).exists()
    check_streams()


def check_streams() -> None:
    """R3: no stream has a gap."""
    for row in Conversation.objects.all():
        seqs = list(Entry.objects.filter(conversation=row).order_by("seq").values_list("seq", flat=True))
        assert seqs == list(range(row.at + 1, row.head + 1))


def test_the_lease_of_a_killed_worker_ends(mira: Who, tally: Root, workers: Workers) -> None:
    """Nothing has to be told: another worker takes it once the lease has passed."""
    check = prepare_memorize(mira, tally)
    assert workers.run("memorize:propose:begin") == EXIT_STATUS
    with kind_in_place(GENERATION):
        assert work() == 0
        with moved(LEASE + timedelta(seconds=1)), asking(Asker(configured=lambda row: True, ask=answer)):
            assert work() > 0
    check()


def test_without_valkey_the_commit_stands_and_the_sweep_finds_the_task(
    mira: Who, tally: Root, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Valkey is killed between commit and hint: the writer sees no error, and the sweep hints again when it is back."""
    sent: list[list[int]] = []

    def away(**_: object) -> None:
        raise ConnectionError("Valkey is gone")

    nudges.forget_failure()
    with monkeypatch.context() as gone:
        gone.setattr(nudges.work, "apply_async", away)
        check = prepare_memorize(mira, tally)
        sweep_tasks()
    nudges.forget_failure()
    monkeypatch.setattr(nudges.work, "apply_async", lambda args, **_: sent.append(args[0]))
    with moved(timedelta(seconds=1)):
        sweep_tasks()
    task = Task.objects.get(kind="memorize")
    assert sent == [[task.pk]]
    assert workers.run() == 0
    check()

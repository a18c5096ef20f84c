"""L6, L8: runs that a kind of the test answers. What steers, what follows, what fails, and when a conversation is idle."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from console.access import Who
from console.clock import now
from lineage.actions.branches import start_branch
from lineage.actions.entries import NewEntry, lock_conversation, place_entries
from lineage.actions.notify import request_notify
from lineage.actions.runs import place_between_rounds
from lineage.actions.settling import is_idle, settle
from lineage.actions.starts import create_task
from lineage.actions.stops import stop_conversation
from lineage.actions.submissions import submit
from lineage.actions.tasks import abort_tasks_of
from lineage.actions.wakes import conversation_subject, wake
from lineage.models import Conversation, Entry, Kind, Note, Root, State, Submission, SubmissionType, WhenBusy
from lineage.tasks.definitions import Definition
from lineage.tasks.running import Run
from tests.factories import make_person, make_root
from tests.lineage.working import kind_in_place, work

pytestmark = pytest.mark.django_db


class Answering:
    """A generation kind: each run makes one round of tools, then waits until the test lets it answer."""

    def __init__(self) -> None:
        self.open = False
        self.fails = ""

    def begin(self, run: Run) -> None:
        with run.commit() as commit:
            commit.wait("model", phase="answer")

    def answer(self, run: Run) -> None:
        with run.commit() as commit:
            row = commit.conversation
            if self.fails:
                commit.fail("The model is away.", {"unanswered": self.fails, "why": "The model is away."})
                return
            if not self.open:
                place_between_rounds(conversation=row, task=commit.task)
                commit.wait("model")
                return
            count = Submission.objects.filter(task=run.task).count()
            text = f"Answer to {count}."
            place_entries(
                conversation=row,
                entries=[NewEntry(kind="assistant", model=[{"role": "assistant", "content": text}])],
            )
            commit.complete()


@pytest.fixture
def answering() -> Iterator[Answering]:
    found = Answering()
    with kind_in_place(
        Definition(
            kind="generation",
            version=1,
            first="begin",
            phases={"begin": found.begin, "answer": found.answer},
            foreground=True,
        )
    ):
        yield found


@pytest.fixture
def mira() -> Who:
    return make_person()


@pytest.fixture
def root(mira: Who) -> Root:
    return make_root(mira)


@pytest.fixture
def branch(mira: Who, root: Root, answering: Answering) -> int:
    """A branch whose prompt is being answered."""
    number = start_branch(who=mira, source=root.pk, prompt="Go.")
    work()
    return number


def round_ends() -> None:
    """The model says something: the run looks at its queue, or answers."""
    wake("model")
    work()


def ask(who: Who, conversation: int, text: str, when: WhenBusy = WhenBusy.FOLLOW_UP) -> dict[str, Any]:
    return submit(who=who, conversation=conversation, type=SubmissionType.INPUT, content=text, when_busy=when)


def said(conversation: int) -> list[str]:
    rows = Entry.objects.filter(conversation=conversation).exclude(model="").order_by("seq")
    return [row.model.split('"content":"')[1].split('"')[0] for row in rows]


def state(conversation: int) -> str:
    return Conversation.objects.get(pk=conversation).state


def status(submission: int) -> tuple[str, str]:
    row = Submission.objects.get(pk=submission)
    return row.status, row.reason


def test_a_run_answers_its_input(branch: int, answering: Answering) -> None:
    assert state(branch) == State.RUNNING
    answering.open = True
    round_ends()
    assert said(branch) == ["Go.", "Answer to 1."]
    assert state(branch) == State.IDLE
    assert Submission.objects.get(conversation=branch).status == "done"


def test_steering_comes_after_the_round_and_follow_ups_after_the_answer(
    mira: Who, branch: int, answering: Answering
) -> None:
    """L6: each follow-up has its own answer; a write keeps its place and starts nothing."""
    first = ask(mira, branch, "Later.")
    second = ask(mira, branch, "Later still.")
    steered = ask(mira, branch, "Now.", WhenBusy.STEER)
    submit(who=mira, conversation=branch, type=SubmissionType.WRITE, content="Aside.")
    round_ends()
    assert said(branch) == ["Go.", "Now.", "Aside."]
    assert status(steered["id"]) == ("placed", "")
    answering.open = True
    round_ends()
    assert said(branch)[3:] == ["Answer to 2.", "Later."]
    assert (status(first["id"]), status(second["id"])) == (("placed", ""), ("queued", ""))
    round_ends()
    round_ends()
    assert said(branch)[5:] == ["Answer to 1.", "Later still.", "Answer to 1."]
    assert state(branch) == State.IDLE


def test_a_steering_input_without_another_round_begins_the_next_run(
    mira: Who, branch: int, answering: Answering
) -> None:
    ask(mira, branch, "Now.", WhenBusy.STEER)
    answering.open = True
    round_ends()
    assert said(branch) == ["Go.", "Answer to 1.", "Now."]
    round_ends()
    assert said(branch)[-1] == "Answer to 1."


def test_a_run_that_fails_leaves_its_input_unanswered_with_the_reason(
    mira: Who, branch: int, answering: Answering
) -> None:
    answering.fails = "request_too_long"
    round_ends()
    row = Submission.objects.get(conversation=branch)
    assert (row.status, row.reason, row.why) == ("unanswered", "request_too_long", "The model is away.")
    assert state(branch) == State.FAILED
    answering.fails, answering.open = "", True
    ask(mira, branch, "Again.")
    assert state(branch) == State.RUNNING
    round_ends()
    assert state(branch) == State.IDLE


def test_stop_ends_the_run_and_its_input_is_unanswered(mira: Who, branch: int, answering: Answering) -> None:
    later = ask(mira, branch, "Later.")
    stop_conversation(who=mira, conversation=branch)
    assert status(later["id"]) == ("withdrawn", "stopped")
    assert status(Submission.objects.filter(conversation=branch).order_by("pk")[0].pk) == ("unanswered", "stopped")
    assert state(branch) == State.IDLE
    answering.open = True
    round_ends()
    assert said(branch) == ["Go."]


def own(owner: int, *, running: bool = True) -> Conversation:
    """A subagent of `owner` with a run of its own, as the part that runs agents makes one."""
    with transaction.atomic():
        parent = lock_conversation(owner)
        moment = now()
        child = Conversation.objects.create(
            kind=Kind.AGENT,
            root_id=parent.root_id,
            owner=parent,
            owner_at=parent.head,
            title="Look",
            created=moment,
            touched=moment,
            state_since=moment,
        )
        if running:
            create_task(kind="generation", conversation=child, input={})
        settle(conversation=child)
        settle(conversation=parent)
    return child


def test_an_owner_is_idle_after_all_that_it_owns_at_any_depth(
    mira: Who, root: Root, branch: int, answering: Answering
) -> None:
    """L8, L11: two subagents that end one after the other, one of them two levels down."""
    other = start_branch(who=mira, source=root.pk, prompt="Watch.")
    work()
    first = own(branch)
    nested = own(own(branch, running=False).pk)
    request_notify(who=mira, caller=other, target=branch, wake=False)
    answering.open = True
    work()
    wake("model")
    work()
    assert state(nested.pk) == State.IDLE
    for number in (first.pk, nested.pk, branch):
        assert is_idle(Conversation.objects.get(pk=number))
    assert Note.objects.filter(submission__conversation=other).count() == 1


def test_an_owner_shows_that_it_waits_for_a_child(mira: Who, branch: int, answering: Answering) -> None:
    """C2; and the waiter is told only when the last one has ended."""
    child = own(branch)
    work()
    answering.open = True
    with transaction.atomic():
        stop_conversation(who=mira, conversation=child.pk)
    own(branch)
    stop_branch_only(branch)
    row = Conversation.objects.get(pk=branch)
    assert (row.state, row.state_why) == (State.CHILD, f"waits for #{child.pk + 1} Look")
    assert not is_idle(row)
    work()
    wake("model")
    work()
    assert is_idle(Conversation.objects.get(pk=branch))


def stop_branch_only(branch: int) -> None:
    """End the run of the branch, not those of its subagents."""
    with transaction.atomic():
        row = lock_conversation(branch)
        abort_tasks_of(conversation=row)
        settle(conversation=row)
        wake(conversation_subject(branch))


def test_a_waiting_task_shows_its_state_until_it_is_woken(mira: Who, branch: int) -> None:
    """C2: an approval before whatever else goes on."""
    seen: list[str] = []

    def park(run: Run) -> None:
        with run.commit() as commit:
            commit.wait("approval:1", phase="use", shows=State.APPROVAL, why="edit_file shop/totals.py")

    def use(run: Run) -> None:
        seen.append(state(branch))
        with run.commit() as commit:
            commit.complete()

    tool = Definition(kind="tool", version=1, first="ask", phases={"ask": park, "use": use}, foreground=True)
    with kind_in_place(tool):
        with transaction.atomic():
            create_task(kind="tool", conversation=lock_conversation(branch), input={})
        work()
        row = Conversation.objects.get(pk=branch)
        assert (row.state, row.state_why) == (State.APPROVAL, "edit_file shop/totals.py")
        wake("approval:1")
        work()
    assert seen == [State.RUNNING]

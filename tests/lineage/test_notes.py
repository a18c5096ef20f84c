"""L21–L24: notes with receipts, finishes that are told once, and the inbox of an agent."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.access import Who
from console.errors import DomainError
from lineage.actions.branches import start_branch
from lineage.actions.inbox import read_inbox
from lineage.actions.notes import leave_note
from lineage.actions.notify import request_notify
from lineage.actions.stops import stop_conversation
from lineage.actions.submissions import submit, withdraw_submission
from lineage.actions.tokens import revoke_token
from lineage.models import Conversation, Delivered, Entry, Note, Root, State, Submission, SubmissionType, Task, WhenBusy
from lineage.tasks.working import run_subject
from tests.factories import make_agent, make_person, make_root, say
from tests.lineage.working import work

pytestmark = pytest.mark.django_db


@pytest.fixture
def mira() -> Who:
    return make_person()


@pytest.fixture
def root(mira: Who) -> Root:
    return make_root(mira)


@pytest.fixture
def wren(root: Root) -> Who:
    return make_agent(root, "wren")[0]


@pytest.fixture
def finch(root: Root) -> Who:
    return make_agent(root, "finch")[0]


def own(who: Who) -> int:
    assert who.conversation is not None
    return who.conversation


def branch(who: Who, source: int, prompt: str = "Round the tax.") -> int:
    number = start_branch(who=who, source=source, prompt=prompt)
    work()
    return number


def last_entry(conversation: int) -> Entry:
    return Entry.objects.filter(conversation=conversation).order_by("-seq")[0]


def inbox(who: Who, **more: Any) -> list[str]:
    return [item["text"] for item in read_inbox(who=who, conversation=own(who), **more).items]


def told(caller: int) -> list[str]:
    rows = Note.objects.filter(source="finished", submission__conversation=caller).order_by("pk")
    return [note.text for note in rows]


# Notes


def test_a_note_to_a_session_is_placed_when_it_is_read(wren: Who, finch: Who) -> None:
    """L21, L24: sent, then placed and read; nobody is woken."""
    sent = leave_note(who=wren, to=own(finch), text="The tax is rounded per line.")
    assert sent["status"] == "sent"
    assert Conversation.objects.get(pk=own(finch)).state == State.IDLE
    assert inbox(finch) == [f"Note from #{own(wren)} (@wren): The tax is rounded per line."]
    note = Note.objects.select_related("submission").get(pk=sent["id"])
    assert (note.included, note.submission.status) == ("inbox", "done")
    assert last_entry(own(finch)).seq == note.submission.seq
    assert inbox(finch) == []


def test_a_note_to_an_idle_branch_is_placed_at_once_and_read_by_whoever_drives_it(mira: Who, root: Root) -> None:
    number = branch(mira, root.pk)
    placed = leave_note(who=mira, to=number, text="Mind the law.")
    assert (placed["status"], placed["entry"]) == ("placed", 3)
    assert f"Note from {mira.name}, who operates this console: Mind the law." in last_entry(number).model
    found = read_inbox(who=mira, conversation=number)
    assert [item["entry"] for item in found.items] == [3]
    assert read_inbox(who=mira, conversation=number).is_empty


def test_a_note_to_the_root_needs_a_from(mira: Who, root: Root) -> None:
    number = branch(mira, root.pk)
    with pytest.raises(DomainError, match="needs `from`"):
        leave_note(who=mira, to="root", text="Hello.")
    placed = leave_note(who=mira, to="root", text="Hello.", sender=number)
    assert (placed["to"], placed["status"]) == (root.pk, "placed")
    assert f"Note from #{number} Round the tax.: Hello." in last_entry(root.pk).model


def test_a_repeated_note_is_left_once(wren: Who, finch: Who) -> None:
    first = leave_note(who=wren, to=own(finch), text="One.", request_id="n")
    assert leave_note(who=wren, to=own(finch), text="Two.", request_id="n") == first
    assert Note.objects.count() == 1


@pytest.mark.parametrize(("length", "accepted"), [(0, False), (1, True), (16_000, True), (16_001, False)])
def test_the_length_of_a_note(wren: Who, finch: Who, length: int, accepted: bool) -> None:
    if accepted:
        assert leave_note(who=wren, to=own(finch), text="x" * length)["id"]
    else:
        with pytest.raises(DomainError, match="1 to 16000"):
            leave_note(who=wren, to=own(finch), text="x" * length)


def test_an_inbox_gives_what_fits_and_says_how_many_more(wren: Who, finch: Who) -> None:
    """L24."""
    for number in range(4):
        leave_note(who=wren, to=own(finch), text=f"{number}" * 100)
    found = read_inbox(who=finch, conversation=own(finch), limit=300)
    assert (len(found.items), found.more) == (2, 2)
    assert found.text.endswith("2 more: call inbox.")
    assert len(inbox(finch)) == 2


def test_a_text_longer_than_the_limit_is_cut_and_says_where_the_whole_is(wren: Who, finch: Who) -> None:
    leave_note(who=wren, to=own(finch), text="x" * 500)
    (text,) = inbox(finch, limit=100)
    assert text.endswith(f"the whole stands at #{own(finch)}/{last_entry(own(finch)).seq})")
    assert len(last_entry(own(finch)).model) > 500


def test_the_inbox_brings_the_news_of_the_tally(mira: Who, root: Root, wren: Who) -> None:
    """L29: for outside conversations the inbox is that."""
    branch(mira, root.pk)
    found = read_inbox(who=wren, conversation=own(wren))
    assert found.catch_up is not None
    assert "Round the tax." in found.catch_up["text"]
    assert read_inbox(who=wren, conversation=own(wren)).is_empty


def test_a_session_whose_token_is_gone_gets_notes_as_entries(mira: Who, wren: Who, finch: Who) -> None:
    assert finch.token is not None
    revoke_token(who=mira, token=finch.token)
    assert leave_note(who=wren, to=own(finch), text="Hello.")["status"] == "placed"


# Notify


def test_a_finish_is_told_once_the_target_is_idle(wren: Who, finch: Who) -> None:
    """L22: to a session as mail that its reader takes."""
    say(finch, own(finch), "Go.", "Half", end=False)
    request_notify(who=wren, caller=own(wren), target=own(finch))
    work()
    assert told(own(wren)) == []
    say(finch, own(finch), "On.", "All done.")
    work()
    assert inbox(wren) == [f"#{own(finch)} finished: finch\n\nIt last said:\nAll done."]
    assert last_entry(own(wren)).kind == "lineage.finished"
    assert Delivered.objects.get(caller=own(wren)).answer == 4


def test_at_once_if_it_is_idle_and_never_the_same_answer_twice(wren: Who, finch: Who) -> None:
    say(finch, own(finch), "Go.", "One.")
    request_notify(who=wren, caller=own(wren), target=own(finch))
    work()
    request_notify(who=wren, caller=own(wren), target=own(finch))
    work()
    assert told(own(wren)) == ["One."]
    say(finch, own(finch), "More.", "Two.")
    work()
    assert told(own(wren)) == ["One.", "Two."]


def test_without_an_answer_it_says_so_once_and_then_waits_for_a_first_one(wren: Who, finch: Who) -> None:
    """The details: recorded as none, keyed by the task."""
    request_notify(who=wren, caller=own(wren), target=own(finch))
    work()
    assert told(own(wren)) == ["It gave no answer."]
    request_notify(who=wren, caller=own(wren), target=own(finch))
    work()
    say(finch, own(finch), "Go.")
    work()
    assert told(own(wren)) == ["It gave no answer."]
    say(finch, own(finch), "Go.", "First.")
    work()
    assert told(own(wren)) == ["It gave no answer.", "First."]


def test_asking_again_replaces_and_a_replay_replaces_nothing(wren: Who, finch: Who) -> None:
    say(finch, own(finch), "Go.", end=False)
    first = request_notify(who=wren, caller=own(wren), target=own(finch), request_id="a")
    work()
    second = request_notify(who=wren, caller=own(wren), target=own(finch), wake=False)
    assert request_notify(who=wren, caller=own(wren), target=own(finch), request_id="a") == first
    tasks = Task.objects.filter(kind="notify").order_by("pk")
    assert [task.outcome for task in tasks] == ["aborted", ""]
    assert tasks[1].pk == second["task"]
    say(finch, own(finch), "On.", "Done.")
    work()
    assert told(own(wren)) == ["Done."]


def test_nobody_waits_for_oneself(wren: Who) -> None:
    with pytest.raises(DomainError, match="its own end"):
        request_notify(who=wren, caller=own(wren), target=own(wren))


def test_a_long_answer_is_told_to_1500_characters_and_an_ellipsis(wren: Who, finch: Who) -> None:
    say(finch, own(finch), "Go.", "x" * 1501)
    request_notify(who=wren, caller=own(wren), target=own(finch))
    work()
    assert told(own(wren)) == ["x" * 1500 + "…"]


def test_a_wake_in_a_branch_is_an_input_and_without_it_a_note(mira: Who, root: Root, finch: Who) -> None:
    number = branch(mira, root.pk)
    say(finch, own(finch), "Go.", "One.")
    request_notify(who=mira, caller=number, target=own(finch))
    work()
    woken = Submission.objects.filter(conversation=number).order_by("-pk")[0]
    assert (woken.type, woken.kind, woken.reason) == ("input", "lineage.finished", "no_model")
    say(finch, own(finch), "Go.", "Two.")
    request_notify(who=mira, caller=number, target=own(finch), wake=False)
    work()
    noted = last_entry(number)
    assert noted.kind == "lineage.note"
    assert '"source":"finished"' in noted.data


def test_a_tally_that_asked_to_be_woken_gets_a_note(mira: Who, root: Root, finch: Who) -> None:
    branch(mira, root.pk)
    say(finch, own(finch), "Go.", "One.")
    request_notify(who=mira, caller=root.pk, target=own(finch))
    work()
    assert last_entry(root.pk).kind == "lineage.note"
    assert "It last said" in last_entry(root.pk).model


def test_many_waiters_of_one_target_are_each_told_once(mira: Who, root: Root, finch: Who) -> None:
    """L11: in batches; callers that are busy, asleep, read mail or run nothing."""
    say(finch, own(finch), "Go.", end=False)
    branches = [branch(mira, root.pk, f"Number {n}.") for n in range(3)]
    say(mira, branches[2], "Busy.", end=False)
    agents = [make_agent(root, f"agent{n}")[0] for n in range(3)]
    for number in (*branches, *(own(agent) for agent in agents)):
        request_notify(who=mira, caller=number, target=own(finch), wake=number != branches[0])
    work()
    say(finch, own(finch), "On.", "Done.")
    work()
    assert [told(number) for number in branches] == [["Done."]] * 3
    assert [inbox(agent)[0].endswith("Done.") for agent in agents] == [True] * 3
    assert Submission.objects.get(conversation=branches[2], kind="lineage.finished").status == "queued"
    assert Task.objects.filter(kind="notify", outcome="completed").count() == 6


# Submissions


def test_many_are_told_in_as_many_statements_as_few(mira: Who, root: Root, finch: Who) -> None:
    """L11: as notes, as inputs that wake, as mail, and in the turn of a conversation that is busy."""
    say(mira, root.pk, "What now?", "Look around.")

    def told_to(count: int) -> int:
        say(finch, own(finch), "Go.", "Working.", end=False)
        noted = [branch(mira, root.pk) for _ in range(count)]
        woken = [branch(mira, root.pk) for _ in range(count)]
        busy = [branch(mira, root.pk) for _ in range(count)]
        reading = [own(make_agent(root, f"reader{n}")[0]) for n in range(count)]
        for caller in [*noted, *woken, *busy, *reading]:
            request_notify(who=mira, caller=caller, target=own(finch), wake=caller not in noted)
        for caller in busy:
            say(mira, caller, "Go on.", "Half.", end=False)
        work()
        answer = say(finch, own(finch), "And?", "Done.")[1]
        with CaptureQueriesContext(connection) as statements:
            run_subject(f"conversation:{own(finch)}")
        for caller in noted:
            assert last_entry(caller).kind == "lineage.note"
        for caller in woken:
            assert last_entry(caller).kind == "lineage.finished"
            assert Submission.objects.get(conversation=caller, kind="lineage.finished").reason == "no_model"
        for caller in [*busy, *reading]:
            assert Submission.objects.get(conversation=caller, kind="lineage.finished").status == "queued"
        assert all(Delivered.objects.get(caller=c).answer == answer for c in [*noted, *woken, *busy, *reading])
        return len(statements)

    few = told_to(1)
    assert told_to(8) - few <= 6  # some statements are made only for few, some only for many


def test_a_finish_that_an_older_version_fixed_is_told_as_it_was(mira: Who, root: Root, wren: Who, finch: Who) -> None:
    """L9: version 1 told in a phase of its own."""
    say(finch, own(finch), "Go.", "Working.", end=False)
    task = request_notify(who=wren, caller=own(wren), target=own(finch), wake=False)["task"]
    fixed = '{"title":"finch","text":"As it was.","answer":2}'
    Task.objects.filter(pk=task).update(version=1, phase="deliver", facts=fixed)
    work()
    assert inbox(wren) == [f"#{own(finch)} finished: finch\n\nIt last said:\nAs it was."]
    assert Task.objects.get(pk=task).outcome == "completed"


def test_what_is_queued_can_be_withdrawn(mira: Who, root: Root) -> None:
    """L6."""
    number = branch(mira, root.pk)
    say(mira, number, "Go.", end=False)
    waiting = submit(who=mira, conversation=number, type=SubmissionType.INPUT, content="And the total.")
    assert waiting["status"] == "queued"
    withdraw_submission(who=mira, submission=waiting["id"])
    say(mira, number, "On.", "Done.")
    assert last_entry(number).kind == "turn_end"
    placed = submit(who=mira, conversation=number, type=SubmissionType.WRITE, content="Said.")
    with pytest.raises(DomainError, match="is done already"):
        withdraw_submission(who=mira, submission=placed["id"])


def test_while_busy_an_input_waits_or_is_rejected(mira: Who, root: Root) -> None:
    number = branch(mira, root.pk)
    say(mira, number, "Go.", end=False)
    with pytest.raises(DomainError, match="is running"):
        submit(who=mira, conversation=number, type=SubmissionType.INPUT, content="Now.", when_busy=WhenBusy.REJECT)
    first = submit(who=mira, conversation=number, type=SubmissionType.INPUT, content="First.")
    note = submit(who=mira, conversation=number, type=SubmissionType.WRITE, content="Aside.")
    assert (first["status"], note["status"]) == ("queued", "queued")
    say(mira, number, "On.", "Done.")
    placed = list(Entry.objects.filter(conversation=number).order_by("seq").values_list("model", flat=True))[-2:]
    assert ["First." in placed[0], "Aside." in placed[1]] == [True, True]


def test_an_input_to_a_tally_is_refused_with_the_remedy(mira: Who, root: Root) -> None:
    """L7; a write passes."""
    branch(mira, root.pk)
    with pytest.raises(DomainError, match="Start a branch from it") as refused:
        submit(who=mira, conversation=root.pk, type=SubmissionType.INPUT, content="Go.")
    assert refused.value.code == "tally"
    written = submit(who=mira, conversation=root.pk, type=SubmissionType.WRITE, content="For the record.")
    assert written["status"] == "done"


def test_an_input_to_a_session_waits_for_its_reader(mira: Who, wren: Who) -> None:
    sent = submit(who=mira, conversation=own(wren), type=SubmissionType.INPUT, content="Look at the tax.")
    assert sent["status"] == "queued"
    assert Conversation.objects.get(pk=own(wren)).state == State.IDLE
    assert inbox(wren) == ["Look at the tax."]
    assert Submission.objects.get(pk=sent["id"]).status == "done"


def test_a_repeated_submission_answers_as_the_first(mira: Who, root: Root) -> None:
    number = branch(mira, root.pk)
    first = submit(who=mira, conversation=number, type=SubmissionType.INPUT, content="Go.", request_id="s")
    again = submit(who=mira, conversation=number, type=SubmissionType.INPUT, content="Other.", request_id="s")
    assert again == first
    assert first["reason"] == "no_model"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": " "},
        {"content": []},
        {"content": [{"type": "tool_use"}]},
        {"content": "x", "entry": {"kind": "user"}},
        {"entry": {"kind": "assistant", "model": [{"role": "user", "content": "x"}]}},
        {"entry": {"kind": "x.mine", "model": [{"role": "assistant", "content": "x"}]}},
        {"entry": {"kind": "x.mine"}},
    ],
)
def test_what_an_input_must_be(mira: Who, root: Root, body: dict[str, Any]) -> None:
    number = branch(mira, root.pk)
    with pytest.raises(DomainError) as refused:
        submit(who=mira, conversation=number, type=SubmissionType.INPUT, **body)
    assert refused.value.code == "invalid"


def test_stop_ends_an_open_turn_and_takes_back_what_is_queued(mira: Who, root: Root) -> None:
    number = branch(mira, root.pk)
    say(mira, number, "Go.", end=False)
    waiting = submit(who=mira, conversation=number, type=SubmissionType.INPUT, content="Then this.")
    assert stop_conversation(who=mira, conversation=number) == {"stopped": [number], "withdrawn": [waiting["id"]]}
    assert last_entry(number).kind == "turn_end"
    assert Conversation.objects.get(pk=number).state == State.IDLE
    assert stop_conversation(who=mira, conversation=number) == {"stopped": [], "withdrawn": []}


def test_stop_before_the_prompt_is_delivered(mira: Who, root: Root) -> None:
    number = start_branch(who=mira, source=root.pk, prompt="Go.")
    assert stop_conversation(who=mira, conversation=number)["stopped"] == [number]
    work()
    assert not Entry.objects.filter(conversation=number).exists()
    assert Conversation.objects.get(pk=number).state == State.IDLE


def test_an_agent_stops_only_its_own(mira: Who, root: Root, wren: Who, finch: Who) -> None:
    with pytest.raises(DomainError) as refused:
        stop_conversation(who=wren, conversation=own(finch))
    assert refused.value.code == "forbidden"
    stop_conversation(who=finch, conversation=own(finch))

"""L18–L20, L29: liquid abstracts, landings that freeze them, and what a branch catches up on."""

from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import IntegrityError

from console.access import Who
from console.errors import DomainError
from lineage.actions.abstracts import write_abstract
from lineage.actions.branches import start_branch
from lineage.actions.entries import NewEntry, lock_conversation, place_entries
from lineage.actions.landings import NewLanding, record_landing
from lineage.actions.submissions import submit
from lineage.catchup import LINES
from lineage.loading import load_context
from lineage.models import Conversation, Entry, Landing, OpenAbstract, Root, SubmissionType, Task
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
def tally(mira: Who, root: Root) -> Root:
    """A tally with one branch."""
    begin(mira, root)
    root.refresh_from_db()
    return root


def begin(who: Who, root: Root, prompt: str = "Round the tax.") -> int:
    number = start_branch(who=who, source=root.pk, prompt=prompt)
    work()
    return number


def first_branch(root: Root) -> int:
    return Conversation.objects.filter(root=root, kind="branch").order_by("pk")[0].pk


def reads(conversation: int) -> list[str]:
    """What the model reads, one text per message part."""
    found: list[str] = []
    for message in load_context(Conversation.objects.get(pk=conversation)).messages:
        content = message["content"]
        found += [content] if isinstance(content, str) else [str(block.get("text")) for block in content]
    return found


def land(who: Who | None, conversation: int, **more: Any) -> dict[str, Any]:
    request_id = more.pop("request_id", None)
    values: dict[str, Any] = {
        "at": Conversation.objects.get(pk=conversation).head,
        "sha": "0123456789abcdef",
        "base": "fedcba9876543210",
        "target": "main",
        "commits": [{"sha": "0123456789", "subject": "Round per line"}],
        "paths": ["shop/totals.py", "tests/test_totals.py"],
        "divergence": "1 ahead, 0 behind",
        "title": "Round the tax",
        **more,
    }
    return record_landing(who=who, conversation=conversation, new=NewLanding(**values), request_id=request_id)


# Abstracts


def test_an_abstract_keeps_its_place_and_reads_as_it_was_last_written(mira: Who, tally: Root) -> None:
    """L18: a carrier entry replaces the anchor's message in place."""
    one, two = first_branch(tally), begin(mira, tally, "Show the total.")
    first = write_abstract(who=mira, conversation=one, text="Rounding begins.", at=2, title="Tax", feature="totals")
    write_abstract(who=mira, conversation=two, text="The total shows.")
    second = write_abstract(who=mira, conversation=one, text="Rounding is done.", at=2)
    assert second["anchor"] == first["entry"] == first["anchor"]
    assert reads(tally.pk)[-2:] == [
        f"Abstract of #{one}, as of #{one}/2:\nRounding is done.",
        f"Abstract of #{two}, as of #{two}/{Conversation.objects.get(pk=two).head}:\nThe total shows.",
    ]
    carrier = Entry.objects.get(conversation=tally.pk, seq=second["entry"])
    assert (carrier.model, carrier.data) == (
        "",
        f'{{"conversation":{one},"at":2,"text":"Rounding is done.","anchor":{first["entry"]}}}',
    )
    state = OpenAbstract.objects.get(conversation=one)
    assert (state.title, state.feature) == ("", "")  # replaced, not merged


def test_the_first_abstract_names_conversation_title_and_entry(mira: Who, tally: Root) -> None:
    branch = first_branch(tally)
    write_abstract(who=mira, conversation=branch, text="Rounding begins.", at=2, title="Tax")
    assert reads(tally.pk)[-1] == f"Abstract of #{branch} Tax, as of #{branch}/2:\nRounding begins."
    assert Conversation.objects.get(pk=branch).title == "Tax"


def test_a_title_that_a_person_gave_stays(mira: Who, tally: Root) -> None:
    branch = first_branch(tally)
    Conversation.objects.filter(pk=branch).update(title="Mine", title_source="person")
    write_abstract(who=mira, conversation=branch, text="Rounding begins.", title="Tax")
    assert Conversation.objects.get(pk=branch).title == "Mine"


def test_an_older_entry_than_the_open_one_is_refused(mira: Who, tally: Root) -> None:
    branch = first_branch(tally)
    say(mira, branch, "Go on.", "Done.")
    write_abstract(who=mira, conversation=branch, text="Now.", at=4)
    with pytest.raises(DomainError) as refused:
        write_abstract(who=mira, conversation=branch, text="Before.", at=3)
    assert (refused.value.code, refused.value.facts) == ("older", {"at": 4})
    write_abstract(who=mira, conversation=branch, text="Again.", at=4)


def test_an_anchor_that_a_head_put_out_of_context_is_not_edited(mira: Who, tally: Root) -> None:
    branch = first_branch(tally)
    first = write_abstract(who=mira, conversation=branch, text="Before.")
    with transaction.atomic():
        place_entries(
            conversation=lock_conversation(tally.pk),
            entries=[NewEntry(kind="compaction", head=True, model=[{"role": "user", "content": "All so far."}])],
        )
    second = write_abstract(who=mira, conversation=branch, text="After.")
    assert second["anchor"] == second["entry"] > first["anchor"]
    assert reads(tally.pk)[0] == "All so far."
    assert reads(tally.pk)[-1].endswith("After.")


def test_nothing_is_written_for_roots(mira: Who, tally: Root) -> None:
    head = Conversation.objects.get(pk=tally.pk).head
    assert write_abstract(who=mira, conversation=tally.pk, text="Me.")["entry"] is None
    assert Conversation.objects.get(pk=tally.pk).head == head


def test_an_ordinary_root_collects_abstracts_too(mira: Who, root: Root) -> None:
    """L15; also of a session that records no entries here."""
    wren, _ = make_agent(root)
    assert wren.conversation is not None
    written = write_abstract(who=wren, conversation=wren.conversation, text="Looking around.")
    assert reads(root.pk) == [f"Abstract of #{wren.conversation}, as of #{wren.conversation}/0:\nLooking around."]
    root.refresh_from_db()
    assert (written["entry"], root.since) == (2, None)


@pytest.mark.parametrize(("length", "accepted"), [(0, False), (1, True), (8000, True), (8001, False)])
def test_the_length_of_an_abstract(mira: Who, tally: Root, length: int, accepted: bool) -> None:
    branch = first_branch(tally)
    if accepted:
        assert write_abstract(who=mira, conversation=branch, text="x" * length)["entry"]
    else:
        with pytest.raises(DomainError, match="1 to 8000 characters"):
            write_abstract(who=mira, conversation=branch, text="x" * length)


# Landings


def test_a_landing_freezes_the_open_abstract_of_its_conversation(mira: Who, tally: Root) -> None:
    """L19."""
    one, two = first_branch(tally), begin(mira, tally, "Show the total.")
    write_abstract(who=mira, conversation=one, text="Rounding is done.", at=2, title="Tax")
    write_abstract(who=mira, conversation=two, text="The total shows.")
    done = land(mira, one, at=2, feature="totals", commit_count=4, summary="Long story.", pushed="origin")
    assert done["status"] == "noted"
    note = Entry.objects.get(conversation=tally.pk, seq=done["note"])
    assert note.kind == "lineage.note"
    assert reads(tally.pk)[-1] == (
        f"Note from the lander: Landed 0123456 on main from #{one}/2 Round the tax (totals):\n"
        "Diverged: 1 ahead, 0 behind\nRound per line\nand 3 more\nChanged: shop/totals.py, tests/test_totals.py\n\n"
        f"State at landing, as of #{one}/2:\nRounding is done."
    )
    assert not any(text.startswith(f"Abstract of #{one}") for text in reads(tally.pk))
    assert not OpenAbstract.objects.filter(conversation=one).exists()
    assert OpenAbstract.objects.filter(conversation=two).exists()
    for part in ('"more":3', '"summary":"Long story."', '"pushed":"origin"', '"abstract":{"at":2,', '"lander":""'):
        assert part in note.data
    assert "Long story" not in note.model


def test_an_abstract_opened_after_a_landing_stands(mira: Who, tally: Root) -> None:
    branch = first_branch(tally)
    write_abstract(who=mira, conversation=branch, text="First.")
    land(mira, branch, request_id="once")
    write_abstract(who=mira, conversation=branch, text="Second.")
    head = Conversation.objects.get(pk=tally.pk).head
    land(mira, branch, request_id="once")
    assert Conversation.objects.get(pk=tally.pk).head == head
    assert reads(tally.pk)[-1].endswith("Second.")


def test_an_ordinary_root_is_told_by_a_task_and_closes_no_abstract(mira: Who, root: Root) -> None:
    """L20."""
    say(mira, root.pk, "Where is the tax?", "In totals.py.")
    branch = begin(mira, root)
    write_abstract(who=mira, conversation=branch, text="Open.")
    done = land(mira, branch)
    assert (done["status"], done["note"]) == ("pending", None)
    work()
    assert reads(root.pk)[-1].startswith("Note from the lander: Landed 0123456 on main")
    assert OpenAbstract.objects.filter(conversation=branch).exists()
    assert work() == 0


def test_the_landing_of_a_root_is_stored_without_a_note(mira: Who, tally: Root) -> None:
    head = Conversation.objects.get(pk=tally.pk).head
    assert land(mira, tally.pk)["status"] == "stored"
    assert Conversation.objects.get(pk=tally.pk).head == head
    assert not Task.objects.filter(kind="memorize").exists()


def test_a_restored_landing_writes_no_note_and_is_not_memorized(mira: Who, tally: Root) -> None:
    """L27."""
    branch = first_branch(tally)
    new = NewLanding(at=1, sha="0" * 40, base="1" * 40, target="main", commits=[], paths=[], divergence="", title="Old")
    assert record_landing(who=mira, conversation=branch, new=new, restored=True)["status"] == "stored"
    assert not Task.objects.filter(kind="memorize").exists()


def test_a_commit_count_below_the_list_is_refused(mira: Who, tally: Root) -> None:
    branch = first_branch(tally)
    with pytest.raises(DomainError, match="commit_count is 0, but 1 commits are listed"):
        land(mira, branch, commit_count=0)
    assert land(mira, branch, commit_count=1)["id"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("sha", "xyz"), ("base", "12"), ("title", " "), ("target", ""), ("at", 99), ("paths", ["p"] * 10_001)],
)
def test_what_a_landing_must_say(mira: Who, tally: Root, field: str, value: Any) -> None:
    with pytest.raises(DomainError) as refused:
        land(mira, first_branch(tally), **{field: value})
    assert refused.value.facts["field"] == field


def test_many_paths_are_counted_in_the_note_and_whole_in_the_landing(mira: Who, tally: Root) -> None:
    branch = first_branch(tally)
    land(mira, branch, paths=[f"f{n}" for n in range(120)])
    assert reads(tally.pk)[-1].endswith("f99 and 20 more")
    assert '"f119"' in Landing.objects.get().data


def test_landings_are_immutable(mira: Who, tally: Root) -> None:
    """R6."""
    land(mira, first_branch(tally))
    with pytest.raises(IntegrityError, match="recorded fact"), transaction.atomic():
        Landing.objects.update(title="Other")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM lineage_landing WHERE title = 'Round the tax'")
        assert cursor.fetchone() == (1,)


# Catch-up


def steer(who: Who, conversation: int) -> list[Entry]:
    """Submit an input; the entries that it led to."""
    head = Conversation.objects.get(pk=conversation).head
    submit(who=who, conversation=conversation, type=SubmissionType.INPUT, content="Go on.")
    return list(Entry.objects.filter(conversation=conversation, seq__gt=head).order_by("seq"))


def test_the_next_input_of_a_branch_comes_after_what_is_new_in_its_tally(mira: Who, tally: Root) -> None:
    """L29: in order; its own news is not news."""
    one, two = first_branch(tally), begin(mira, tally, "Show the total.")
    write_abstract(who=mira, conversation=one, text="Mine.")
    write_abstract(who=mira, conversation=two, text="Early.", title="Total")
    write_abstract(who=mira, conversation=two, text="Late.", title="Total")
    land(mira, two, title="Show the total")
    write_abstract(who=mira, conversation=two, text="Later still.", title="Total")
    note, asked = steer(mira, one)
    assert (note.kind, asked.kind) == ("lineage.note", "user")
    said = reads(one)[-2].splitlines()
    assert said[0] == f"New in the tally of #{tally.pk} since you last looked:"
    assert said[1] == f"- #{two} started from #{tally.pk}/2: Show the total."
    assert said[2].startswith("- Landed 0123456 on main from")
    assert said[3].startswith(f"- Abstract of #{two} Total, as of #{two}/")
    assert said[3].endswith("Later still.")
    assert len(said) == 4
    (again,) = steer(mira, one)
    assert again.kind == "user"


def test_what_is_new_is_bounded_and_says_how_many_more(mira: Who, tally: Root) -> None:
    one = first_branch(tally)
    for number in range(LINES + 3):
        start_branch(who=mira, source=tally.pk, prompt=f"Number {number}.")
    note, _ = steer(mira, one)
    assert "3 more before these" in note.model
    assert f"Number {LINES + 2}." in note.model
    assert "Number 2." not in note.model
    assert steer(mira, one)[0].kind == "user"


def test_a_fork_knows_what_its_source_had_caught_up_on(mira: Who, tally: Root) -> None:
    """L16: the position in the note, newest first."""
    one = first_branch(tally)
    begin(mira, tally, "Show the total.")
    steer(mira, one)
    nested = start_branch(who=mira, source=one, prompt="Nested.")
    work()
    assert not any(text.startswith("New in the tally") for text in reads(nested)[-1:])
    begin(mira, tally, "Third.")
    note, _ = steer(mira, nested)
    assert "Third." in note.model
    assert "Show the total" not in note.model


def test_an_ordinary_root_gives_no_catch_up(mira: Who, root: Root) -> None:
    say(mira, root.pk, "Where is the tax?", "In totals.py.")
    one = begin(mira, root)
    begin(mira, root, "Show the total.")
    assert [entry.kind for entry in steer(mira, one)] == ["user"]

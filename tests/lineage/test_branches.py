"""L12–L17: forks with a prompt, the root's lines, briefs, and when a root becomes a tally."""

from pathlib import Path

import pytest

from console.access import Who
from console.errors import DomainError
from lineage.actions.branches import Image, intent_line, start_branch
from lineage.actions.memory import apply_memory_ops
from lineage.brief import memory_brief
from lineage.catchup import tally_known
from lineage.loading import load_context
from lineage.models import Conversation, Delivered, Entry, Root, State, Submission, TitleSource
from lineage.sections import lineage_section
from tests.factories import make_agent, make_person, make_root, say
from tests.lineage.working import work

pytestmark = pytest.mark.django_db


@pytest.fixture
def mira() -> Who:
    return make_person()


@pytest.fixture
def root(mira: Who) -> Root:
    return make_root(mira)


def branch(who: Who, source: int, prompt: str = "Add a total.", **more: object) -> Conversation:
    number = start_branch(who=who, source=source, prompt=prompt, **more)  # type: ignore[arg-type]
    return Conversation.objects.get(pk=number)


def entries(conversation: int) -> list[tuple[int, str]]:
    return list(Entry.objects.filter(conversation=conversation).order_by("seq").values_list("seq", "kind"))


def text_of(conversation: int, seq: int) -> str:
    return str(Entry.objects.get(conversation=conversation, seq=seq).model)


def remember(who: Who, root: Root, slug: str = "tax-rounding") -> None:
    op = {
        "op": "add",
        "slug": slug,
        "kind": "decision",
        "line": "Tax is rounded per line",
        "body": "Because of the law.",
    }
    apply_memory_ops(who=who, root=root.pk, ops=[op])


def test_an_empty_root_becomes_a_tally_at_its_reset_entry(mira: Who, root: Root) -> None:
    """L13."""
    made = branch(mira, root.pk)
    root.refresh_from_db()
    assert root.since == 1
    assert entries(root.pk) == [(1, "reset"), (2, "lineage.branched")]
    assert (made.at, made.parent_id, made.path) == (1, root.pk, [[root.pk, 1]])


def test_a_root_with_a_conversation_stays_an_ordinary_one_and_collects_lines(mira: Who, root: Root) -> None:
    """L15."""
    say(mira, root.pk, "Where is the tax?", "In totals.py.")
    made = branch(mira, root.pk)
    root.refresh_from_db()
    assert root.since is None
    assert made.at == 3
    assert entries(root.pk)[-1] == (4, "lineage.branched")
    assert f"#{made.pk} started from #{root.pk}/3: Add a total." in text_of(root.pk, 4)


def test_an_empty_branch_gets_a_reset_entry_and_becomes_no_tally(mira: Who, root: Root) -> None:
    """L13 and the details: an empty source that is no root."""
    session = make_agent(root)[0].conversation
    assert session is not None
    made = branch(mira, session)
    root.refresh_from_db()
    assert root.since is None
    assert entries(session) == [(1, "reset"), (2, "lineage.branched")]
    assert made.at == 1


def test_a_session_joins_with_a_marker_that_does_not_keep_the_root_from_becoming_a_tally(mira: Who, root: Root) -> None:
    """L1, L13."""
    make_agent(root)
    branch(mira, root.pk)
    root.refresh_from_db()
    assert entries(root.pk) == [(1, "lineage.branched"), (2, "reset"), (3, "lineage.branched")]
    assert root.since == 2


def test_a_branch_never_inherits_its_own_line_and_reads_its_prompt_once(mira: Who, root: Root) -> None:
    """L12."""
    made = branch(mira, root.pk)
    assert made.state == State.RUNNING
    work()
    made.refresh_from_db()
    assert load_context(made).messages == [{"role": "user", "content": "Add a total."}]
    assert entries(made.pk) == [(2, "user")]


def test_without_a_model_the_prompt_is_unanswered_and_says_what_to_do(mira: Who, root: Root) -> None:
    """L6: no_model; an outside runner may still answer."""
    made = branch(mira, root.pk)
    work()
    made.refresh_from_db()
    submission = Submission.objects.get(conversation=made)
    assert (submission.status, submission.reason, submission.seq) == ("unanswered", "no_model", 2)
    assert (made.state, made.state_why) == (State.IDLE, submission.why)
    assert "No model is configured" in made.state_why
    say(mira, made.pk, "Go on.", "Done.")
    submission.refresh_from_db()
    made.refresh_from_db()
    assert (submission.status, submission.reason, made.state_why) == ("done", "", "")


def test_a_branch_of_a_branch_marks_its_source_and_tells_the_root_who_started_it(mira: Who, root: Root) -> None:
    """L15."""
    wren, _ = make_agent(root, "wren")
    first = branch(mira, root.pk)
    work()
    say(mira, first.pk, "Go on.", "Done.")
    second = branch(wren, first.pk, at=3, by=wren.conversation, title="  Round\n the tax ")
    line = Entry.objects.filter(conversation=root.pk).order_by("-seq")[0]
    assert f"#{second.pk} started by #{wren.conversation} (@wren) from #{first.pk}/3: Round the tax" in line.model
    assert f'"from":{first.pk}' in line.data
    marker = Entry.objects.filter(conversation=first.pk).order_by("-seq")[0]
    assert (marker.kind, marker.model) == ("lineage.branched", "")
    assert second.title == "Round the tax"
    assert second.title_source == TitleSource.INTENT


def test_the_model_folder_and_thinking_are_the_sources_unless_given(mira: Who, tmp_path: Path) -> None:
    root = make_root(mira, folder=str(tmp_path))
    Conversation.objects.filter(pk=root.pk).update(model="wise", thinking="high")
    first = branch(mira, root.pk)
    second = branch(mira, root.pk, model="quick")
    assert (first.model, first.thinking, first.folder) == ("wise", "high", str(tmp_path))
    assert (second.model, second.thinking) == ("quick", "high")


def test_a_missing_folder_is_refused_before_anything_is_written(mira: Who, tmp_path: Path) -> None:
    """L12; the same with the folder there is accepted."""
    folder = tmp_path / "shop"
    root = make_root(mira, folder=str(folder))
    with pytest.raises(DomainError) as refused:
        branch(mira, root.pk)
    assert refused.value.code == "folder_missing"
    assert entries(root.pk) == []
    folder.mkdir()
    branch(mira, root.pk)


@pytest.mark.parametrize(("at", "accepted"), [(0, False), (1, True), (2, True), (3, False)])
def test_the_fork_entry_must_be_visible(mira: Who, root: Root, at: int, accepted: bool) -> None:
    branch(mira, root.pk)
    if accepted:
        assert branch(mira, root.pk, at=at).at == at
    else:
        with pytest.raises(DomainError, match="shows no entry") as refused:
            branch(mira, root.pk, at=at)
        assert refused.value.facts["head"] == 2


def test_a_blank_prompt_is_refused(mira: Who, root: Root) -> None:
    with pytest.raises(DomainError, match="needs a prompt"):
        branch(mira, root.pk, " \n ")


def test_images_come_after_the_text_and_markers_carry_their_number(mira: Who, root: Root) -> None:
    made = branch(mira, root.pk, "See.", images=[Image(data="AAAA", media_type="image/png")])
    work()
    made.refresh_from_db()
    content = load_context(made).messages[0]["content"]
    assert [block["type"] for block in content] == ["text", "image"]
    assert '"images":1' in Entry.objects.get(conversation=root.pk, seq=2).data


@pytest.mark.parametrize(
    ("prompt", "title", "line"),
    [
        ("Do  it\nnow", None, "Do it now"),
        ("p" * 81, None, "p" * 79 + "…"),
        ("p" * 80, "  ", "p" * 80),
        ("prompt", "t" * 61, "t" * 59 + "…"),
        ("prompt", "t" * 60, "t" * 60),
    ],
)
def test_the_intent_line(prompt: str, title: str | None, line: str) -> None:
    """L14: the ellipsis is included."""
    assert intent_line(prompt, title) == line


def test_a_repeated_request_starts_one_branch(mira: Who, root: Root) -> None:
    """R4, and forks inherit no request ids."""
    first = branch(mira, root.pk, request_id="one")
    assert branch(mira, root.pk, "Another body", request_id="one").pk == first.pk
    work()
    nested = branch(mira, first.pk, request_id="one")
    assert nested.pk != first.pk
    assert Conversation.objects.filter(kind="branch").count() == 2


def test_a_root_with_memories_gives_its_brief_whatever_the_entry(mira: Who, root: Root) -> None:
    """L17, L16: what the branch knows of the tally is the brief's tip."""
    first = branch(mira, root.pk)
    remember(mira, root)
    tip = Conversation.objects.get(pk=root.pk).head
    second = branch(mira, root.pk, at=1)
    work()
    second.refresh_from_db()
    context = load_context(second)
    assert "tax-rounding (decision): Tax is rounded per line" in str(context.head[0]["content"])
    assert context.rest == [{"role": "user", "content": "Add a total."}]
    assert tally_known(second, second.head) == tip
    assert tally_known(first, first.head) == 1
    nested = branch(mira, second.pk)
    assert load_context(nested).head == context.head
    assert "begins with a brief" in lineage_section(second)
    assert "begins with a brief" in lineage_section(nested)
    assert "begins with the tally" in lineage_section(first)


def test_a_brief_of_an_ordinary_root_covers_no_tip(mira: Who, root: Root) -> None:
    say(mira, root.pk, "Where is the tax?", "In totals.py.")
    remember(mira, root)
    made = branch(mira, root.pk)
    assert tally_known(made, made.head) is None
    brief = memory_brief(root, Conversation.objects.get(pk=root.pk))
    assert brief is not None
    assert brief.tip is None


def test_the_lineage_section(mira: Who, root: Root) -> None:
    """L30."""
    made = branch(mira, root.pk)
    session = make_agent(root)[0].conversation
    assert lineage_section(Conversation.objects.get(pk=root.pk)) == ""
    assert session is not None
    assert lineage_section(Conversation.objects.get(pk=session)).startswith(f"Your root is #{root.pk}.")
    section = lineage_section(made)
    assert f"You branched from #{root.pk} at #{root.pk}/1 for: Add a total." in section


def test_a_fork_starts_with_its_sources_map_of_delivered_answers(mira: Who, root: Root) -> None:
    """L23."""
    first = branch(mira, root.pk)
    second = branch(mira, root.pk)
    Delivered.objects.create(caller=first, target=second, answer=7)
    nested = branch(mira, first.pk, at=1)
    assert Delivered.objects.get(caller=nested).answer == 7

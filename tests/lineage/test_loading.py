"""L3, L4 on a real database: forks of forks, edits, heads, and what the loader costs."""

from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from lineage.actions.entries import NewEdit, NewEntry, lock_conversation, place_entries
from lineage.actions.forks import fork_conversation
from lineage.loading import last_own_answer, load_context
from lineage.models import Conversation, Outcome
from tests.factories import make_root

pytestmark = pytest.mark.django_db


def said(role: str, content: Any) -> list[dict[str, Any]]:
    return [{"role": role, "content": content}]


def answered(text: str, **more: Any) -> NewEntry:
    return NewEntry(kind="assistant", model=said("assistant", [{"type": "text", "text": text}]), **more)


def asked(text: str, **more: Any) -> NewEntry:
    return NewEntry(kind="user", model=said("user", text), **more)


def place(conversation: Conversation, *entries: NewEntry) -> None:
    with transaction.atomic():
        place_entries(conversation=lock_conversation(conversation.pk), entries=entries)
    conversation.refresh_from_db()


def fork(conversation: Conversation, at: int) -> Conversation:
    with transaction.atomic():
        return fork_conversation(source=lock_conversation(conversation.pk), at=at)


def calling(call: str) -> NewEntry:
    block = {"type": "tool_use", "id": call, "name": "search", "input": {}}
    return NewEntry(kind="assistant", model=said("assistant", [block]), message_id="m")


def resulting(call: str) -> NewEntry:
    block = {"type": "tool_result", "tool_use_id": call, "content": "found"}
    return NewEntry(kind="tool_result", model=said("user", [block]))


def any_entry(seq: int) -> st.SearchStrategy[NewEntry]:
    """An entry of any kind as the `seq`th of a conversation, with edits and heads that reach back."""
    earlier = st.integers(1, max(1, seq - 1))
    plain = st.sampled_from(
        [
            asked(f"Question {seq}"),
            answered(f"Answer {seq}"),
            answered(f"Half {seq}", outcome=Outcome.ABORTED),
            answered(f"Broken {seq}", outcome=Outcome.FAILED),
            calling("a"),
            calling("b"),
            resulting("a"),
            resulting("b"),
            NewEntry(kind="system", data={"text": "shown only"}),
            NewEntry(kind="turn_end"),
            NewEntry(kind="lineage.branched", model=said("user", f"#9 started from {seq}: more")),
            NewEntry(kind="lineage.note", model=said("user", f"Note {seq}")),
            NewEntry(kind="lineage.finished", model=said("user", f"Finished {seq}")),
            NewEntry(kind="document.edited", data={"from": 1, "to": 2}),
            NewEntry(kind="reset", head=True),
            NewEntry(kind="reset", head=True, model=said("user", f"Brief {seq}")),
        ]
    )
    if seq == 1:
        return plain
    return st.one_of(
        plain,
        earlier.map(lambda to: NewEntry(kind="compaction", head=to, model=said("user", f"Summary {seq}"))),
        earlier.map(lambda to: NewEntry(kind="lineage.abstract", edits=[NewEdit(target=to)])),
        earlier.map(
            lambda to: NewEntry(
                kind="lineage.abstract", edits=[NewEdit(target=to, messages=said("user", f"Abstract {seq}"))]
            )
        ),
    )


histories = st.integers(1, 14).flatmap(lambda n: st.tuples(*(any_entry(seq) for seq in range(1, n + 1))))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories, st.data())
def test_the_context_at_an_entry_is_that_of_a_fork_made_there(
    history: tuple[NewEntry, ...], data: st.DataObject
) -> None:
    """L4, for every kind of entry, through a fork that lies between."""
    conversation = make_root().conversation
    middle = data.draw(st.integers(0, len(history)))
    if middle:
        place(conversation, *history[:middle])
        conversation = fork(conversation, middle)
    if history[middle:]:
        place(conversation, *history[middle:])
    for at in range(1, len(history) + 1):
        made = fork(conversation, at)
        assert load_context(made).messages == load_context(conversation, at).messages


def test_what_comes_after_the_fork_entry_is_not_read() -> None:
    """L3: also an edit of an inherited entry, made later in the parent."""
    root = make_root().conversation
    place(root, asked("One."), answered("Two."))
    branch = fork(root, 2)
    place(root, NewEntry(kind="lineage.abstract", edits=[NewEdit(target=1)]))
    assert [m["role"] for m in load_context(branch).messages] == ["user", "assistant"]
    assert next(m["role"] for m in load_context(root).messages) == "user"
    assert load_context(root).messages[1:] == load_context(branch).messages[1:]


def test_forks_go_on_counting_and_forks_at_inherited_entries_work() -> None:
    """L2, L3."""
    root = make_root().conversation
    place(root, asked("One."), answered("Two."), asked("Three."))
    first = fork(root, 2)
    place(first, asked("Branch."))
    assert first.head == 3
    second = fork(first, 1)
    assert second.path == [[root.pk, 1]]
    assert load_context(second).messages == said("user", "One.")


def test_a_context_costs_three_statements_however_many_forks(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    """L4."""
    conversation = make_root().conversation
    place(conversation, asked("Go."))
    for number in range(10):
        place(conversation, answered(f"{number}"), asked("More."))
        conversation = fork(conversation, conversation.head)
    with django_assert_num_queries(2):
        assert len(load_context(conversation).messages) == 21
    place(conversation, NewEntry(kind="lineage.abstract", edits=[NewEdit(target=1)]))
    with django_assert_num_queries(3):
        load_context(conversation)


def test_the_last_own_answer() -> None:
    """L22: own, not blank, still in context; lines of one answer are one text."""
    root = make_root().conversation
    place(root, answered("Inherited."))
    branch = fork(root, 1)
    assert last_own_answer(branch) == (0, "")
    place(branch, answered("One,", message_id="m"), calling("a"), answered("two.", message_id="m"), resulting("a"))
    assert last_own_answer(branch) == (4, "One,\ntwo.")
    place(branch, answered(" "), answered("Half", outcome=Outcome.ABORTED))
    assert last_own_answer(branch) == (4, "One,\ntwo.")
    place(branch, answered("Three."))
    assert last_own_answer(branch) == (8, "Three.")
    place(branch, NewEntry(kind="lineage.abstract", edits=[NewEdit(target=8)]))
    assert last_own_answer(branch)[0] == 4
    place(branch, NewEntry(kind="reset", head=True))
    assert last_own_answer(branch) == (0, "")

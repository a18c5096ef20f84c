"""L25–L27: one writer, atomic batches, history, limits that are named, and proposals after a landing."""

import json
from typing import Any

import pytest
from django.db import transaction
from django.db.utils import IntegrityError

from console.access import Who
from console.errors import DomainError
from lineage.actions.branches import start_branch
from lineage.actions.landings import NewLanding, record_landing
from lineage.actions.memory import OPS, apply_memory_ops, decide_proposal
from lineage.asking import Asker, asking
from lineage.memories import memories_json, memory_json
from lineage.models import Conversation, Landing, Memory, MemoryChange, MemoryProposal, Root
from lineage.models.memory import MEMORIES
from tests.factories import make_agent, make_person, make_root
from tests.lineage.working import work

pytestmark = pytest.mark.django_db


@pytest.fixture
def mira() -> Who:
    return make_person()


@pytest.fixture
def root(mira: Who) -> Root:
    return make_root(mira)


def add(slug: str = "rounding", **more: Any) -> dict[str, Any]:
    return {"op": "add", "slug": slug, "kind": "fact", "line": "Tax is rounded", "body": "Per line, by law.", **more}


def test_ops_apply_in_order_and_leave_a_history(mira: Who, root: Root) -> None:
    apply_memory_ops(who=mira, root=root.pk, ops=[add(source="#1/2"), add("second")])
    done = apply_memory_ops(
        who=mira,
        root=root.pk,
        ops=[
            {"op": "update", "slug": "rounding", "line": "Tax is rounded per line"},
            {"op": "delete", "slug": "second"},
            add("second", kind="lesson"),
        ],
    )
    assert (done["version"], done["memories"]) == (2, 2)
    assert [(m["slug"], m["kind"], m["line"]) for m in memories_json(root)] == [
        ("rounding", "fact", "Tax is rounded per line"),
        ("second", "lesson", "Tax is rounded"),
    ]
    found = memory_json(root, "rounding")
    assert (found["body"], found["source"]) == ("Per line, by law.", "#1/2")
    assert [(change["version"], change["op"]) for change in found["history"]] == [(2, "update"), (1, "add")]
    assert found["history"][0]["before"]["line"] == "Tax is rounded"
    assert MemoryChange.objects.count() == 5


@pytest.mark.parametrize(
    ("op", "code", "facts"),
    [
        (add(), "exists", {"field": "slug"}),
        ({"op": "update", "slug": "none"}, "missing", {"field": "slug"}),
        ({"op": "delete", "slug": "none"}, "missing", {"field": "slug"}),
        ({"op": "forget", "slug": "rounding"}, "invalid", {"field": "op"}),
        (add("a-" * 24 + "b"), "too_long", {"field": "slug", "limit": 48, "actual": 49}),
        (add("Not Kebab"), "invalid", {"field": "slug"}),
        (add("x", line="l" * 161), "too_long", {"field": "line", "limit": 160, "actual": 161}),
        (add("x", line="two\nlines"), "invalid", {"field": "line"}),
        (add("x", body="b" * 4001), "too_long", {"field": "body", "limit": 4000, "actual": 4001}),
        (add("x", kind="rumour"), "invalid", {"field": "kind"}),
        (add("x", source="there"), "invalid", {"field": "source"}),
        ({"op": "add", "slug": "x", "kind": "fact", "line": "l"}, "invalid", {"field": "body"}),
        (add("x", mood="glad"), "invalid", {"field": "mood"}),
    ],
)
def test_one_op_over_a_limit_refuses_the_whole_batch_and_says_which(
    mira: Who, root: Root, op: dict[str, Any], code: str, facts: dict[str, Any]
) -> None:
    """L26; the batch without it is applied."""
    apply_memory_ops(who=mira, root=root.pk, ops=[add()])
    with pytest.raises(DomainError) as refused:
        apply_memory_ops(who=mira, root=root.pk, ops=[add("fine"), op])
    assert refused.value.code == code
    assert {**refused.value.facts, **facts} == refused.value.facts
    assert refused.value.facts["ordinal"] == 2
    assert Memory.objects.count() == 1
    apply_memory_ops(who=mira, root=root.pk, ops=[add("fine")])


@pytest.mark.parametrize(
    "op",
    [
        add("a-" * 23 + "ab"),
        add("x", line="l" * 160),
        add("x", body="b" * 4000),
        add("constructor"),
        add("__proto__"),
    ],
)
def test_what_just_fits_is_kept(mira: Who, root: Root, op: dict[str, Any]) -> None:
    apply_memory_ops(who=mira, root=root.pk, ops=[op])
    assert Memory.objects.get().slug == op["slug"]


def test_the_number_of_memories_is_counted_after_the_batch(mira: Who, root: Root) -> None:
    for start in range(0, MEMORIES, OPS):
        apply_memory_ops(who=mira, root=root.pk, ops=[add(f"m{n}") for n in range(start, start + OPS)])
    with pytest.raises(DomainError) as refused:
        apply_memory_ops(who=mira, root=root.pk, ops=[add("more")])
    assert (refused.value.code, refused.value.facts) == ("too_many", {"limit": 400, "actual": 401})
    apply_memory_ops(who=mira, root=root.pk, ops=[add("more"), {"op": "delete", "slug": "m0"}])
    assert Memory.objects.count() == MEMORIES


@pytest.mark.parametrize(("count", "accepted"), [(0, False), (1, True), (OPS, True), (OPS + 1, False)])
def test_the_length_of_a_batch(mira: Who, root: Root, count: int, accepted: bool) -> None:
    ops = [add(f"m{n}") for n in range(count)]
    if accepted:
        assert apply_memory_ops(who=mira, root=root.pk, ops=ops)["memories"] == count
    else:
        with pytest.raises(DomainError, match=f"1 to {OPS} ops"):
            apply_memory_ops(who=mira, root=root.pk, ops=ops)


def test_of_agents_only_the_main_one_writes(root: Root) -> None:
    """L26: others are told whom to tell."""
    wren, _ = make_agent(root, "wren")
    with pytest.raises(DomainError, match="no main agent yet"):
        apply_memory_ops(who=wren, root=root.pk, ops=[add()])
    chief, _ = make_agent(root, "chief", main=True)
    with pytest.raises(DomainError, match="Leave chief, its main agent, a note") as refused:
        apply_memory_ops(who=wren, root=root.pk, ops=[add()])
    assert refused.value.code == "forbidden"
    apply_memory_ops(who=chief, root=root.pk, ops=[add()])


def test_a_repeated_batch_applies_once(mira: Who, root: Root) -> None:
    first = apply_memory_ops(who=mira, root=root.pk, ops=[add()], request_id="r")
    assert apply_memory_ops(who=mira, root=root.pk, ops=[add("other")], request_id="r") == first
    assert MemoryChange.objects.count() == 1


def test_the_history_is_immutable(mira: Who, root: Root) -> None:
    """R6."""
    apply_memory_ops(who=mira, root=root.pk, ops=[add()])
    with pytest.raises(IntegrityError, match="recorded fact"), transaction.atomic():
        MemoryChange.objects.all().delete()


# After a landing


def land(who: Who, root: Root) -> Landing:
    branch = Conversation.objects.filter(root=root, kind="branch").first()
    number = branch.pk if branch else start_branch(who=who, source=root.pk, prompt="Round the tax.")
    new = NewLanding(
        at=1, sha="0" * 40, base="1" * 40, target="main", commits=[], paths=["a.py"], divergence="", title="Round it!"
    )
    done = record_landing(who=who, conversation=number, new=new)
    work()
    return Landing.objects.get(pk=done["id"])


def answering(text: str) -> Asker:
    return Asker(configured=lambda row: True, ask=lambda row, prompt: text)


def test_without_a_model_a_landing_leaves_a_proposal_to_accept(mira: Who, root: Root) -> None:
    landing = land(mira, root)
    proposal = MemoryProposal.objects.get()
    (op,) = json.loads(proposal.ops)
    assert (op["op"], op["slug"], op["source"]) == ("add", "round-it", f"#{landing.conversation_id}/1")
    assert "No model is configured" in proposal.why
    decide_proposal(who=mira, proposal=proposal.pk, accept=True)
    assert Memory.objects.get().line == "Round it!"
    assert decide_proposal(who=mira, proposal=proposal.pk, accept=True).status == "accepted"
    assert MemoryChange.objects.count() == 1


def test_a_proposal_is_edited_or_dropped_once(mira: Who, root: Root) -> None:
    land(mira, root)
    proposal = MemoryProposal.objects.get()
    decide_proposal(who=mira, proposal=proposal.pk, accept=True, ops=[add("edited")])
    assert Memory.objects.get().slug == "edited"
    with pytest.raises(DomainError) as refused:
        decide_proposal(who=mira, proposal=proposal.pk, accept=False)
    assert (refused.value.code, refused.value.facts["by"]) == ("decided", mira.name)
    land(mira, root)
    second = MemoryProposal.objects.latest("pk")
    decide_proposal(who=mira, proposal=second.pk, accept=False)
    assert Memory.objects.count() == 1


def test_a_model_writes_what_passes_the_limits(mira: Who, root: Root) -> None:
    with asking(answering(f"Sure: {json.dumps([add('by-model')])}")):
        land(mira, root)
    assert Memory.objects.get().slug == "by-model"
    assert not MemoryProposal.objects.exists()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (json.dumps([add("x", line="l" * 161)]), "161 characters; at most 160"),
        ("I would rather not.", "could not be read"),
        ("[1]", "something other than ops"),
    ],
)
def test_what_a_model_says_wrongly_waits_for_a_person(mira: Who, root: Root, said: str, why: str) -> None:
    with asking(answering(said)):
        land(mira, root)
    assert why in MemoryProposal.objects.get().why
    assert not Memory.objects.exists()


def test_a_model_may_have_nothing_to_say(mira: Who, root: Root) -> None:
    with asking(answering("[]")):
        land(mira, root)
    assert not MemoryProposal.objects.exists()
    assert not Memory.objects.exists()

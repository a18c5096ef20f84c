"""The one writer of a root's memory (L26): atomic batches of ops, each change kept as history; and proposals (L27)."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max

from console.access import Permission, Who, require
from console.clock import now
from console.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from console.json_text import dumped, storable
from console.models import Touched
from console.requests import checked_request_id, remember, remembered
from lineage.access import root_for
from lineage.actions.roots import lock_root
from lineage.models import Memory, MemoryChange, MemoryKind, MemoryProposal, ProposalStatus, Root
from lineage.models.memory import BODY_LENGTH, LINE_LENGTH, MEMORIES, SLUG_LENGTH

OPS = 100  # of one batch: a person reads it before accepting
SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*|constructor|__proto__")
SOURCE = re.compile(r"#\d{1,18}/\d{1,9}")
_FIELDS = ("kind", "line", "body", "source")
_LIMITS = {"line": LINE_LENGTH, "body": BODY_LENGTH}


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """What a memory says."""

    kind: str
    line: str
    body: str
    source: str = ""


def apply_memory_ops(
    *, who: Who, root: int, ops: Sequence[dict[str, Any]], request_id: str | None = None
) -> dict[str, Any]:
    """One atomic batch; answers `{version, changed, memories}`. Ops: `{op: add, slug, kind, line, body, source?}`,
    `{op: update, slug, ...}`, `{op: delete, slug}`.

    Refusals: `not_found`, `forbidden` (an agent that is not the root's main one), and those of `checked_ops`.
    """
    request_id = checked_request_id(request_id)
    row = root_for(who, root, Permission.WRITE)
    _check_writer(who, row)
    with transaction.atomic():
        locked = lock_root(root)
        receiver = f"root:{root}"
        first = remembered(receiver=receiver, actor=who.actor, request_id=request_id)
        if first is not None:
            return dict(first)
        result = write_memory_ops(root=locked, ops=ops, author=who.actor)
        remember(receiver=receiver, actor=who.actor, request_id=request_id, result=result)
    return result


def write_memory_ops(*, root: Root, ops: Sequence[dict[str, Any]], author: int | None) -> dict[str, Any]:
    """The same for a root that the caller has locked and whose writer it has checked."""
    rows = {memory.slug: memory for memory in Memory.objects.filter(root=root)}
    before = {
        slug: Remembered(kind=memory.kind, line=memory.line, body=memory.body, source=memory.source)
        for slug, memory in rows.items()
    }
    steps = checked_ops(ops, before)
    moment = now()
    version = (MemoryChange.objects.filter(root=root).aggregate(last=Max("version"))["last"] or 0) + 1
    MemoryChange.objects.bulk_create(
        MemoryChange(
            root=root,
            version=version,
            ordinal=ordinal,
            op=step.op,
            slug=step.slug,
            before=dumped(asdict(step.before)) if step.before else "",
            after=dumped(asdict(step.after)) if step.after else "",
            author_id=author,
            time=moment,
        )
        for ordinal, step in enumerate(steps, 1)
    )
    after = {step.slug: step.after for step in steps}
    Memory.objects.filter(root=root, slug__in=after).delete()
    Memory.objects.bulk_create(
        Memory(root=root, slug=slug, changed=moment, **asdict(said)) for slug, said in after.items() if said is not None
    )
    Touched.objects.create(conversation=root.pk)
    return {
        "version": version,
        "changed": list(after),
        "memories": Memory.objects.filter(root=root).count(),
    }


@dataclass(frozen=True, kw_only=True)
class Step:
    """One checked op: what stood before, and what stands after it."""

    op: str
    slug: str
    before: Remembered | None
    after: Remembered | None


def checked_ops(ops: Sequence[dict[str, Any]], before: dict[str, Remembered]) -> list[Step]:
    """The ops in order, each against what the former ones left; nothing is written here.

    A refusal names op number, slug, field, limit and actual length: `invalid`, `too_long`, `exists`, `missing`, `too_many`.
    """
    if not 1 <= len(ops) <= OPS:
        raise Invalid("ops", f"A batch has 1 to {OPS} ops; this one has {len(ops)}.", limit=OPS, actual=len(ops))
    state = dict(before)
    steps: list[Step] = []
    for ordinal, given in enumerate(ops, 1):
        op, slug = str(given.get("op", "")), str(given.get("slug", ""))
        _check_slug(ordinal, slug)
        if unknown := set(given) - {"op", "slug", *_FIELDS}:
            raise _refused(ordinal, slug, min(unknown), f"there is no field {min(unknown)}")
        old = state.get(slug)
        if op == "add" and old is not None:
            raise _refused(ordinal, slug, "slug", "this slug exists already; update it, or choose another", "exists")
        if op in ("update", "delete") and old is None:
            raise _refused(ordinal, slug, "slug", "there is no such memory; add it first", "missing")
        if op not in ("add", "update", "delete"):
            raise _refused(ordinal, slug, "op", "an op is add, update or delete")
        new = None if op == "delete" else _said(ordinal, slug, given, old)
        steps.append(Step(op=op, slug=slug, before=old, after=new))
        if new is None:
            del state[slug]
        else:
            state[slug] = new
    if len(state) > MEMORIES:
        raise DomainError(
            "too_many",
            f"The root would remember {len(state)} things; at most {MEMORIES} fit. Merge or delete some in the same batch.",
            limit=MEMORIES,
            actual=len(state),
        )
    return steps


def decide_proposal(
    *, who: Who, proposal: int, accept: bool, ops: Sequence[dict[str, Any]] | None = None
) -> MemoryProposal:
    """Accept a proposal, perhaps edited (`ops`), or drop it. Refusals: `not_found`, `forbidden`, `decided`, those of the ops."""
    row = MemoryProposal.objects.filter(pk=proposal).first()
    if row is None:
        raise NotFound("proposal", proposal)
    require(who, row.root_id, Permission.DECIDE, what="proposal", name=proposal)
    status = ProposalStatus.ACCEPTED if accept else ProposalStatus.DROPPED
    with transaction.atomic():
        root = lock_root(row.root_id)
        row = MemoryProposal.objects.select_for_update(no_key=True).get(pk=proposal)
        if row.status != ProposalStatus.WAITING:
            if row.status == status and row.decided_by_id == who.actor:
                return row
            by = row.decided_by.name if row.decided_by else None
            raise Conflict("decided", f"{by} has {row.status} this proposal already.", by=by, decision=row.status)
        if accept:
            write_memory_ops(root=root, ops=json.loads(row.ops) if ops is None else ops, author=who.actor)
        row.status, row.decided_by_id, row.decided = status, who.actor, now()
        row.save(update_fields=["status", "decided_by", "decided"])
        Touched.objects.create(conversation=root.pk)
    return row


def _check_writer(who: Who, root: Root) -> None:
    """Operators write; of agents only the root's main one (L26)."""
    if not who.is_agent or root.main_id == who.actor:
        return
    main = root.main.name if root.main else None
    tell = f"Leave {main}, its main agent, a note" if main else "Leave the root a note; it has no main agent yet"
    raise Forbidden(f"Only the main agent of #{root.pk} writes its memory. {tell}, saying what to remember.", main=main)


def _check_slug(ordinal: int, slug: str) -> None:
    if len(slug) > SLUG_LENGTH:
        raise _too_long(ordinal, slug[:SLUG_LENGTH], "slug", SLUG_LENGTH, len(slug))
    if not SLUG.fullmatch(slug):
        raise _refused(ordinal, slug, "slug", "a slug is kebab-case: lower-case letters and digits, joined by hyphens")


def _said(ordinal: int, slug: str, given: dict[str, Any], old: Remembered | None) -> Remembered:
    values: dict[str, str] = {}
    for name in _FIELDS:
        value = given.get(name)
        if value is None:
            if old is None and name != "source":
                raise _refused(ordinal, slug, name, f"an added memory needs a {name}")
            values[name] = getattr(old, name) if old is not None else ""
            continue
        if not isinstance(value, str):
            raise _refused(ordinal, slug, name, f"{name} is text")
        values[name] = storable(value).strip()
        if name in _LIMITS and len(values[name]) > _LIMITS[name]:
            raise _too_long(ordinal, slug, name, _LIMITS[name], len(values[name]))
    if values["kind"] not in MemoryKind.values:
        raise _refused(ordinal, slug, "kind", f"a kind is one of {', '.join(MemoryKind.values)}")
    if not values["line"] or len(values["line"].splitlines()) != 1:
        raise _refused(ordinal, slug, "line", "line is one line, and not blank")
    if not values["body"]:
        raise _refused(ordinal, slug, "body", "body is blank")
    if values["source"] and not SOURCE.fullmatch(values["source"]):
        raise _refused(ordinal, slug, "source", "a source names an entry, like #12/345")
    return Remembered(**values)


def _refused(ordinal: int, slug: str, field: str, why: str, code: str = "invalid") -> Invalid:
    return Invalid(
        field,
        f"Op {ordinal} ({slug[:SLUG_LENGTH]}): {why}. Nothing was written.",
        code=code,
        ordinal=ordinal,
        slug=slug,
    )


def _too_long(ordinal: int, slug: str, field: str, limit: int, actual: int) -> Invalid:
    return Invalid(
        field,
        f"Op {ordinal} ({slug}): its {field} has {actual} characters; at most {limit} are kept. Nothing was written.",
        code="too_long",
        ordinal=ordinal,
        slug=slug,
        limit=limit,
        actual=actual,
    )

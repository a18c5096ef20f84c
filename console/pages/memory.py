"""The memory of a root: its index by kind, one memory with its history, what waits for a decision (L25-L27)."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from console.access import Permission, Who, may
from console.errors import DomainError, NotFound
from console.pages.view import page
from lineage.access import root_for
from lineage.actions.memory import apply_memory_ops, decide_proposal
from lineage.memories import LIMITS, memories_json, memory_json, proposal_json, proposals_of
from lineage.models import Root
from lineage.models.memory import MemoryKind, ProposalStatus

KINDS = ((MemoryKind.DECISION, "Decisions"), (MemoryKind.FACT, "Facts"), (MemoryKind.LESSON, "Lessons"))
FIELDS = ("slug", "kind", "line", "body", "source")


@require_GET
@page
def memory(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """The index, and beside it the memory of `?slug=`, the proposal of `?proposal=`, or with `?new` an empty form."""
    root = root_for(who, number)
    slug, proposal = request.GET.get("slug", ""), request.GET.get("proposal", "")
    context: dict[str, Any] = {"adding": "new" in request.GET, "asked": {"kind": MemoryKind.DECISION}}
    if slug:
        context["one"] = context["asked"] = memory_json(root, slug)
    if proposal.isdecimal():
        context["deciding"] = next((row for row in _waiting(root) if row["id"] == int(proposal)), None)
    return _memory(request, who, root, **context)


@require_POST
@page
def memory_changed(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """Add, update or delete one memory. What was typed stays when it is refused."""
    root = root_for(who, number)
    asked = {name: _text(request.POST, name) for name in FIELDS}
    op = _text(request.POST, "op")
    given = {"slug": asked["slug"]} if op == "delete" else asked
    try:
        apply_memory_ops(who=who, root=number, ops=[{"op": op, **given}])
    except DomainError as refusal:
        one = _known(root, asked["slug"]) if op != "add" else None
        return _memory(request, who, root, refusal=refusal, asked=asked, one=one, adding=op == "add")
    here = reverse("memory", args=[number])
    return redirect(here if op == "delete" else f"{here}?slug={asked['slug']}#one")


@require_POST
@page
def proposal_decided(request: HttpRequest, who: Who, number: int, proposal: int) -> HttpResponse:
    """Accept a proposal, as it stands or edited, or drop it."""
    root = root_for(who, number, Permission.DECIDE)
    accept = _text(request.POST, "decision") == "accept"
    ops = _edited_ops(request.POST)
    try:
        decide_proposal(who=who, proposal=proposal, accept=accept, ops=ops if accept else None)
    except DomainError as refusal:
        deciding = next((row for row in _waiting(root) if row["id"] == proposal), None)
        if deciding is not None and ops is not None:
            deciding["ops"] = ops
        return _memory(request, who, root, refusal=refusal, deciding=deciding)
    return redirect("memory", number)


def _memory(request: HttpRequest, who: Who, root: Root, **more: Any) -> HttpResponse:
    index = memories_json(root)
    refusal = more.get("refusal")
    context = {
        "root": root,
        "kinds": [(name, [row for row in index if row["kind"] == kind]) for kind, name in KINDS],
        "kind_names": MemoryKind.values,
        "total": len(index),
        "limits": LIMITS,
        "proposals": _waiting(root),
        "may_write": may(who, root.pk, Permission.WRITE),
        "may_decide": may(who, root.pk, Permission.DECIDE),
        **more,
    }
    return render(request, "console/memory.html", context, status=refusal.status if refusal else 200)


def _waiting(root: Root) -> list[dict[str, Any]]:
    rows = [proposal_json(row) for row in proposals_of(root, ProposalStatus.WAITING)]
    return [row | {"ops_json": json.dumps(row["ops"])} for row in rows]


def _known(root: Root, slug: str) -> dict[str, Any] | None:
    try:
        return memory_json(root, slug)
    except NotFound:
        return None


def _edited_ops(form: QueryDict) -> list[dict[str, Any]] | None:
    """The ops as the form has them, or none when they were not edited. What the form does not show goes along in `ops`."""
    try:
        ops = json.loads(form.get("ops", ""))
    except ValueError:
        return None
    if not isinstance(ops, list) or not all(isinstance(op, dict) for op in ops):
        return None
    for ordinal, op in enumerate(ops, 1):
        for name in FIELDS:
            if f"{name}-{ordinal}" in form:
                op[name] = _text(form, f"{name}-{ordinal}")
    return ops


def _text(form: QueryDict, name: str) -> str:
    """A field as it was typed: browsers send CR LF for a line break of a text area."""
    return form.get(name, "").replace("\r\n", "\n").strip()

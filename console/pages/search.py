"""Search as people read it: what was found, with the words marked and a link to the place (C1, C5)."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from console.access import Who
from console.errors import DomainError
from console.pages.numbers import number_in
from console.pages.view import page
from console.search.finding import Found, search
from console.search.keeping import waiting
from console.search.models import SearchKind
from lineage.access import root_for
from lineage.models import Root

KINDS = [("", "All"), ("entry", "Entries"), ("document", "Documents"), ("memory", "Memories"), ("title", "Titles")]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A place that was found. `runs` are the parts of its excerpt, and whether each is marked."""

    found: Found
    runs: list[tuple[str, bool]]


@require_GET
@page
def search_page(request: HttpRequest, who: Who) -> HttpResponse:
    """`?q=`, and to narrow it `root` and `kind`; `cursor` goes on. A refused question is shown above the form."""
    asked = request.GET.get("q", "").strip()
    kind = request.GET.get("kind", "")
    kind = kind if kind in SearchKind.values else ""
    number = number_in(request, "root")
    root = root_for(who, number) if number is not None else None
    found, following, refusal = _found(request, who, asked, root, kind)
    return render(
        request,
        "console/search.html",
        {
            "asked": asked,
            "items": [Shown(found=one, runs=_runs(one)) for one in found],
            "older": _query(asked, root, kind) + f"&cursor={following}" if following else "",
            "from_top": bool(request.GET.get("cursor")) and _query(asked, root, kind),
            "refusal": refusal,
            "root": root,
            "everywhere": _query(asked, None, kind),
            "kinds": [(name, label, _query(asked, root, name)) for name, label in KINDS],
            "kind": kind,
            "pending": waiting(),
        },
    )


def _found(
    request: HttpRequest, who: Who, asked: str, root: Root | None, kind: str
) -> tuple[list[Found], str | None, DomainError | None]:
    if not asked:
        return [], None, None
    try:
        found, following = search(
            who=who,
            asked=asked,
            root=root.pk if root is not None else None,
            kinds=[kind] if kind else [],
            cursor=request.GET.get("cursor"),
        )
    except DomainError as refusal:
        return [], None, refusal
    return found, following, None


def _runs(found: Found) -> list[tuple[str, bool]]:
    runs: list[tuple[str, bool]] = []
    at = 0
    for start, end in found.marks:
        runs += [(found.excerpt[at:start], False), (found.excerpt[start:end], True)]
        at = end
    return [run for run in [*runs, (found.excerpt[at:], False)] if run[0]]


def _query(asked: str, root: Root | None, kind: str) -> str:
    values = {"q": asked, "root": root.pk if root is not None else "", "kind": kind}
    return "?" + urlencode({name: value for name, value in values.items() if value})

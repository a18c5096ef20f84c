"""Beginning things: a root, a document."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from console.access import Permission, Who
from console.errors import DomainError
from console.pages.view import page
from documents.actions.documents import create_document
from lineage.access import conversation_for
from lineage.actions.roots import create_root


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new_root(request: HttpRequest, who: Who) -> HttpResponse:
    """A form, and the root that it makes; whoever makes it owns it."""
    refusal: DomainError | None = None
    title, folder = request.POST.get("title", ""), request.POST.get("folder", "").strip()
    if request.method == "POST":
        try:
            return redirect("tree", create_root(who=who, title=title, folder=folder).pk)
        except DomainError as error:
            refusal = error
    context = {"title": title, "folder": folder, "refusal": refusal}
    return render(request, "console/new_root.html", context, status=refusal.status if refusal else 200)


@require_POST
@page
def new_document(request: HttpRequest, who: Who, number: int) -> HttpResponse:
    """A document of the conversation; of a root's own conversation the whole tree shares it (D9)."""
    row = conversation_for(who, number, Permission.WRITE)
    made = create_document(who=who, conversation=row.pk, title=request.POST.get("title", ""))
    return redirect("document", made.pk)

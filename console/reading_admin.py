"""The administration shows every row and changes almost none: what is recorded is immutable (R6), and what may change passes
through an action (R1). Apps register what deserves more than the plain view; `register_rest` gives the others that."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

from django.apps import apps
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[Any]
else:
    _Admin = admin.ModelAdmin  # generic only in its stubs

ROOTS = 30  # in the filter of a list: those that were touched last; any other by its number in the address
COLUMNS = 8  # of a list that nobody laid out by hand: what fits on a laptop
_LONG = (models.TextField, models.JSONField, models.BinaryField)


class ConsoleSite(admin.AdminSite):
    """Django's own administration behind the console's own sign-in, which slows guessing (S3)."""

    site_header = "Lineage administration"
    site_title = "Lineage"
    index_title = "Everything that is stored"
    site_url = "/"

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if request.user.is_authenticated:
            raise PermissionDenied
        wanted = request.GET.get("next") or reverse("admin:index")
        return redirect(f"{reverse('signin')}?{urlencode({'next': wanted})}")


class OfRoot(admin.SimpleListFilter):
    """The rows of one tree, however far they are from its root."""

    title = "root"
    parameter_name = "root"

    def lookups(self, request: HttpRequest, model_admin: _Admin) -> list[tuple[str, str]]:
        roots = apps.get_model("lineage", "Root")._default_manager.select_related("conversation")
        shown = list(roots.order_by("-conversation__touched")[:ROOTS])
        chosen = self.value()
        if chosen and chosen.isdecimal() and all(str(row.pk) != chosen for row in shown):
            shown += roots.filter(pk=int(chosen))
        return [(str(row.pk), str(row.conversation)) for row in shown]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        chosen, path = self.value(), path_to_root(queryset.model)
        if not chosen or path is None:
            return queryset
        return queryset.filter(**{path: chosen}) if chosen.isdecimal() else queryset.none()


class ReadOnly(_Admin):
    """Rows to look at. Long texts stand on a row's own page and are not read for the list."""

    list_per_page = 50
    show_full_result_count = False  # counting millions of entries would be most of the page's time
    actions: Any = ()
    long: ClassVar[tuple[str, ...]] = ()  # fields that the list does not read

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Every list of what belongs to a tree can be narrowed to it."""
        own = super().get_list_filter(request)
        return own if path_to_root(self.model) is None else (OfRoot, *own)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        rows = super().get_queryset(request)
        match = request.resolver_match
        return rows.defer(*self.long) if match and (match.url_name or "").endswith("_changelist") else rows


def linked(name: str, *, heading: str = "") -> Callable[[ReadOnly, models.Model], str]:
    """A column that leads to the row a foreign key names."""

    @admin.display(description=heading or name.replace("_", " "), ordering=name)
    def column(view: ReadOnly, row: models.Model) -> str:
        target = getattr(row, name)
        if target is None:
            return "–"
        options = target._meta
        url = reverse(f"admin:{options.app_label}_{options.model_name}_change", args=[target.pk])
        return format_html('<a href="{}">{}</a>', url, target)

    return column


def listed(*names: str, by: str, heading: str) -> Callable[[ReadOnly, models.Model], str]:
    """A column that leads to the lists of a row's own: models of its app, narrowed by the parameter `by`."""

    @admin.display(description=heading)
    def column(view: ReadOnly, row: models.Model) -> str:
        app = row._meta.app_label
        pairs = ((name, reverse(f"admin:{app}_{name}_changelist"), by, row.pk) for name in names)
        return format_html_join(" · ", '<a href="{1}?{2}={3}">{0}</a>', pairs)

    return column


@admin.display(description="page")
def on_page(view: ReadOnly, row: models.Model) -> str:
    """A column that leads to the row's page in the console; the row has `get_page_url`, or is a conversation."""
    return format_html('<a href="/conversations/{}/">open</a>', row.pk)


def register_rest(app: str) -> None:
    """The plain view for every model of the app that has none yet, and a plural that is English for all."""
    for model in apps.get_app_config(app).get_models():
        model._meta.verbose_name_plural = plural(str(model._meta.verbose_name))
        if not admin.site.is_registered(model):
            admin.site.register(model, plain(model))


def plural(name: str) -> str:
    """Entries and memories; what is plural or a participle already stays."""
    if name.endswith(("ch", "sh", "x")):
        return name + "es"
    if name.endswith(("s", "ed", "seen")):
        return name
    return name[:-1] + "ies" if name.endswith("y") and name[-2] not in "aeiou" else name + "s"


def plain(model: type[models.Model]) -> type[ReadOnly]:
    """Columns of everything short, filters by every choice, links to what it belongs to, search in names and numbers."""
    fields = [field for field in model._meta.concrete_fields if not isinstance(field, _LONG)]
    keys = [field for field in fields if isinstance(field, models.ForeignKey)]
    shown = [f"{field.name}_link" if field in keys else field.name for field in fields[:COLUMNS]]
    texts = [field for field in fields if isinstance(field, models.CharField) and not field.choices]
    columns: dict[str, Any] = {
        **{f"{field.name}_link": linked(field.name) for field in keys},
        "list_display": ("__str__", *shown),
        "list_filter": tuple(field.name for field in fields if field.choices or isinstance(field, models.BooleanField)),
        "list_select_related": _names(keys) or False,
        "search_fields": (*(f"={_number_of(field)}" for field in fields if _is_number(field)), *_names(texts)),
        "long": _names(field for field in model._meta.concrete_fields if isinstance(field, _LONG)),
        "ordering": ("-pk",),
    }
    return type(f"{model.__name__}Admin", (ReadOnly,), columns)


def path_to_root(model: type[models.Model]) -> str | None:
    """How a query comes from a row to the root of its tree, by the fewest keys; none for what belongs to no tree."""
    root = apps.get_model("lineage", "Root")
    ways: list[tuple[str, type[models.Model]]] = [("", model)]
    seen = {model, root}
    for path, place in ways:  # grows while it is walked: the nearest come first
        for field in place._meta.concrete_fields:
            target = field.related_model
            if not isinstance(field, models.ForeignKey) or not isinstance(target, type):
                continue
            if target is root and model is not root:
                return f"{path}{field.name}"
            if target not in seen and target._meta.app_label in _TREE_APPS:
                seen.add(target)
                ways.append((f"{path}{field.name}__", target))
    return None


_TREE_APPS = ("documents", "lineage")  # an actor, say, leads to no tree


def _is_number(field: Any) -> bool:
    return isinstance(field, models.ForeignKey) or field.primary_key


def _number_of(field: Any) -> str:
    """The number that a key names, over keys that are keys themselves."""
    path = [field.name]
    while isinstance(field, models.ForeignKey):
        assert isinstance(field.related_model, type)
        field = field.related_model._meta.pk
        path.append(field.name)
    return "__".join(path)


def _names(fields: Iterable[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields)

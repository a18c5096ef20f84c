"""The small parts that every template repeats: icons, states, authors, times, numbers."""

from datetime import datetime
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console import shown
from console.clock import now
from console.markdown import rendered

register = template.Library()

register.filter("thin", shown.thin)
register.filter("brief", shown.brief)
register.filter("size", shown.size)
register.filter("money", shown.money)
register.filter("hue", shown.hue)
register.filter("markdown", rendered)


@register.simple_tag
def icon(name: str, classes: str = "i") -> SafeString:
    """An icon of the sprite, for the eye only: what it says stands in words beside it or in a label."""
    return format_html('<svg class="{}" aria-hidden="true"><use href="#i-{}"/></svg>', classes, name)


@register.simple_tag
def state(name: str) -> SafeString:
    """The mark of a state: colour, shape and a name for those who hear the page."""
    mark, label = shown.STATES[name]
    return format_html('<svg class="s s-{0}" role="img" aria-label="{1}"><use href="#s-{0}"/></svg>', mark, label)


@register.simple_tag
def state_words(name: str, words: str = "") -> SafeString:
    """The mark with its words: "Running", or what is given."""
    mark, label = shown.STATES[name]
    said = words or label[0].upper() + label[1:]
    return format_html(
        '<span class="st st-{0}"><svg class="s s-{0}" aria-hidden="true"><use href="#s-{0}"/></svg>{1}</span>',
        mark,
        said,
    )


@register.simple_tag
def who(actor: Any) -> SafeString:
    """An author: people solid, agents hatched. `actor` has `pk`, `name` and `kind`; none is the console itself."""
    if actor is None:
        return format_html('<span class="who">{}</span>', "console")
    kind = "" if actor.kind == "person" else "agent "
    return format_html('<span class="who {}a{}">{}</span>', kind, shown.hue(actor.pk), actor.name)


@register.simple_tag
def ago(time: datetime | None, form: str = "ago") -> SafeString:
    """A moment. `form`: "ago" (3 m ago), "age" (3 m), "clock" (15:41). The exact one is its title."""
    if time is None:
        return format_html('<span class="quiet">{}</span>', "never")
    words = f"{time:%H:%M}" if form == "clock" else shown.age(now() - time)
    if form == "ago":
        words += " ago"
    return format_html(
        '<time datetime="{}" data-time="{}" title="{}">{}</time>',
        time.isoformat(),
        form,
        shown.exact(time),
        words,
    )

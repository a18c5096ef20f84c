"""How numbers, times, states and authors are written on a page. Pure; its twin for times is `static/console/times.js`."""

from datetime import datetime, timedelta

# Thin, and never broken across lines.
THIN = "\u202f"

AUTHOR_HUES = 12  # the palette of base.css: a1 to a12

# State of a conversation: the class of base.css and the sprite, and what it is called.
STATES: dict[str, tuple[str, str]] = {
    "running": ("run", "running"),
    "approval": ("approval", "needs approval"),
    "answer": ("answer", "waiting for an answer"),
    "child": ("child", "waiting for a child"),
    "failed": ("failed", "failed"),
    "idle": ("idle", "idle"),
}


def hue(actor: int | None) -> int:
    """The colour of an author, 1 to 12, by its id. Five is prime to twelve: neighbours in age lie far apart in colour."""
    return 0 if actor is None else actor * 5 % AUTHOR_HUES + 1


def thin(number: int) -> str:
    """12345 as "12 345"."""
    return f"{number:,}".replace(",", THIN)


def brief(number: int) -> str:
    """Three digits at most: 950, 4.1 k, 318 M. An overview rounds; the exact number stands in the title."""
    value = float(number)
    if abs(value) < 1000:
        return str(number)
    step = next((n for n in (1, 2) if abs(value) < 999.5 * 1000**n), 3)
    value /= 1000**step
    return f"{value:.1f}{THIN}{'kMG'[step - 1]}" if abs(value) < 99.95 else f"{value:.0f}{THIN}{'kMG'[step - 1]}"


def size(count: int) -> str:
    """Bytes: 950 B, 205.4 KiB."""
    value = float(count)
    if value < 1024:
        return f"{count}{THIN}B"
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024 or unit == "GiB":
            break
    return f"{value:.1f}{THIN}{unit}"


def money(micros: int | None) -> str:
    """Millionths of a dollar; nothing where the price is unknown."""
    if micros is None:
        return "unknown"
    return f"${THIN}{micros / 1_000_000:,.2f}".replace(",", THIN)


def age(span: timedelta) -> str:
    """How long ago, in one unit: 12 s, 41 m, 4 h, 18 d."""
    seconds = max(0, int(span.total_seconds()))
    for limit, unit, name in ((60, 1, "s"), (3600, 60, "m"), (86400, 3600, "h")):
        if seconds < limit:
            return f"{seconds // unit}{THIN}{name}"
    return f"{seconds // 86400}{THIN}d"


def exact(time: datetime) -> str:
    """The whole moment for a title: 30 Nov 2026, 15:41:50 UTC. The browser rewrites it in the reader's own zone."""
    return f"{time:%-d %b %Y, %H:%M:%S %Z}".strip()

"""Entries that are no message: labelled rules across the page, and the bookkeeping that folds into one line. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from console.json_text import storable
from console.markdown import entry_url
from console.pages.calls import Output, output_of
from console.shown import thin

WORDS = 300  # characters of a rule's own line


@dataclass(frozen=True, kw_only=True)
class Rule:
    """`words` stand in the line, `link` leads where they point, `text` unfolds. A quiet one folds with its neighbours."""

    kind: str
    icon: str
    words: str
    link: tuple[str, str] | None = None  # (words, URL)
    text: Output | None = None
    prose: str = ""  # Markdown that unfolds
    tone: str = ""  # "", "failed", "note", "landed"
    quiet: bool = False
    code: str = ""


def rule_of(kind: str, data: dict[str, Any], text: str, *, whole: bool = False) -> Rule:
    """The rule of an entry. `text` is what the model reads in it."""
    known = RULES.get(kind)
    if known is not None:
        return known(kind, data, text)
    _, _, plain = kind.partition(".")
    said = _line(data)
    if plain == "error":
        return Rule(kind=kind, icon="x", words=said or "The model did not answer", tone="failed")
    if plain == "interrupted":
        return Rule(kind=kind, icon="stop", words=said or "Interrupted")
    if plain == "command":
        return Rule(kind=kind, icon="term", words="Command", code=storable(str(data.get("command", "")))[:WORDS])
    if plain == "output":
        return _unfolding(kind, "term", f"Output of the command, {_length(_string(data, 'text'))}", data, whole)
    shown = text or _string(data, "text")
    return Rule(
        kind=kind,
        icon="note",
        words=said or storable(" ".join(shown.split()))[:WORDS] or "Nothing to show",
        text=output_of(shown, whole=whole) if len(shown) > 80 else None,
        quiet=True,
    )


def _unfolding(kind: str, icon: str, words: str, data: dict[str, Any], whole: bool) -> Rule:
    text = _string(data, "text")
    return Rule(kind=kind, icon=icon, words=words, text=output_of(text, whole=whole) if text else None)


def _compaction(kind: str, data: dict[str, Any], text: str) -> Rule:
    how = {"manual": "Compacted by hand", "auto": "Compacted"}.get(_string(data, "trigger"), "Compacted")
    length = f": what came before is summed up in {thin(len(text))} characters" if text else ""
    return Rule(kind=kind, icon="fold", words=how + length, prose=text)


def _reset(kind: str, data: dict[str, Any], text: str) -> Rule:
    words = "The context begins anew here"
    if text:
        words += f", with a brief of {thin(len(text))} characters"
    return Rule(kind=kind, icon="fold", words=words, prose=text)


def _turn_end(kind: str, data: dict[str, Any], text: str) -> Rule:
    took = _line(data)
    return Rule(kind=kind, icon="check", words=f"Turn ended after {took}" if took else "Turn ended", tone="end")


def _system(kind: str, data: dict[str, Any], text: str) -> Rule:
    shown = text or _string(data, "text")
    return Rule(kind=kind, icon="note", words=_line(data) or f"Instructions, {_length(shown)}", prose=shown)


def _branched(kind: str, data: dict[str, Any], text: str) -> Rule:
    branch, at = data.get("branch"), data.get("at")
    words = f"started from {_place(data.get('from'), at)}: {_string(data, 'intent')}" if at else _string(data, "intent")
    return Rule(kind=kind, icon="fork", words=words[:WORDS], link=_conversation(branch))


def _place(conversation: Any, at: Any) -> str:
    return f"#{conversation}/{at}" if isinstance(conversation, int) else f"entry {at}"


def _abstract(kind: str, data: dict[str, Any], text: str) -> Rule:
    conversation = data.get("conversation") or data.get("branch")
    shown = _string(data, "text") or text
    return Rule(
        kind=kind,
        icon="note",
        words=f"abstract: {_string(data, 'title')}".rstrip(": ")[:WORDS],
        link=_conversation(conversation),
        prose=shown,
    )


def _note(kind: str, data: dict[str, Any], text: str) -> Rule:
    if data.get("sha"):
        first = text.strip().partition("\n")[0] or f"Landed {str(data['sha'])[:7]}"
        return Rule(kind=kind, icon="landed", words=first[:WORDS], prose=text, tone="landed")
    shown = _string(data, "text") or text
    source, sender = _string(data, "source"), data.get("from")
    if source == "finished":
        return _finished(kind, data, text)
    if source == "main":
        news = f"New in the tally since it last looked, {thin(len(shown))} characters"
        return Rule(kind=kind, icon="tree", words=news, link=_root(sender), prose=shown, tone="note")
    line = _short(" ".join(shown.split()))
    who = _string(data, "operator") or (source if source != "operator" else "")
    words = f"{'left a note' if sender else f'Note from {who}' if who else 'Note'}: {line}"
    long = len(line) < len(shown.strip()) or "\n" in shown.strip()
    link = _conversation(sender)
    return Rule(kind=kind, icon="note", words=words, link=link, prose=shown if long else "", tone="note")


def _finished(kind: str, data: dict[str, Any], text: str) -> Rule:
    target = data.get("from") or data.get("target") or data.get("conversation")
    title, shown = _string(data, "title"), _string(data, "text") or text
    words = _short(f"finished{f': {title}' if title else ''}")
    return Rule(kind=kind, icon="check", words=words, link=_conversation(target), prose=shown, tone="note")


def _document_edited(kind: str, data: dict[str, Any], text: str) -> Rule:
    first, last = data.get("first"), data.get("last")
    revisions = "" if not last else f", revision {last}" if first in (None, last) else f", revisions {first} to {last}"
    document = data.get("document")
    title = _string(data, "title") or f"document {document}"
    link = (title, f"/documents/{document}/") if isinstance(document, int) else None
    return Rule(kind=kind, icon="file", words=f"edited{revisions}", link=link)


RULES: dict[str, Callable[[str, dict[str, Any], str], Rule]] = {
    "compaction": _compaction,
    "reset": _reset,
    "turn_end": _turn_end,
    "system": _system,
    "lineage.branched": _branched,
    "lineage.abstract": _abstract,
    "lineage.note": _note,
    "lineage.finished": _finished,
    "document.edited": _document_edited,
}


def _conversation(number: Any, seq: Any = None) -> tuple[str, str] | None:
    if not isinstance(number, int):
        return None
    return (f"#{number}", entry_url(number, seq) if isinstance(seq, int) else f"/conversations/{number}/")


def _root(number: Any) -> tuple[str, str] | None:
    return (f"#{number}", f"/roots/{number}/") if isinstance(number, int) else None


def _string(data: dict[str, Any], key: str) -> str:
    found = data.get(key)
    return storable(found) if isinstance(found, str) else ""


def _line(data: dict[str, Any]) -> str:
    found = _string(data, "line") or _string(data, "text")
    return _short(" ".join(found.split()))


def _short(words: str) -> str:
    return words if len(words) <= WORDS else words[: WORDS - 1] + "…"


def _length(text: str) -> str:
    return f"{thin(len(text))} characters"

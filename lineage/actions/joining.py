"""The markers that sessions and imported branches leave in their root (L1, L15)."""

from typing import Any

from lineage.actions.entries import NewEntry, lock_conversation, place_entries
from lineage.catchup import know_tally
from lineage.models import Conversation, Root, TallyKind, TallyLine


def mark_session(*, root: Root, session: Conversation) -> None:
    """A branch marker without a fork. The root's model reads it only once the root is a tally: a marker alone must not keep an
    empty root from becoming one (L13). The caller has locked the root."""
    text = f"#{session.pk} joined: {session.title or session.source}"
    data = {"branch": session.pk, "at": 0, "intent": session.title, "images": 0, "session": True}
    _mark(root, session, text, data)


def mark_import(*, root: Root, branch: Conversation, source: Conversation) -> None:
    """The same for a branch that a transcript brought: it has its line like any other. The caller has locked the root."""
    text = f"#{branch.pk} started from #{source.pk}/{branch.at}: {branch.title}"
    data = {"branch": branch.pk, "at": branch.at, "intent": branch.title, "images": 0, "from": source.pk}
    _mark(root, branch, text, data)


def _mark(root: Root, about: Conversation, text: str, data: dict[str, Any]) -> None:
    own = lock_conversation(root.pk)
    model = [{"role": "user", "content": text}] if root.is_tally else None
    marker = NewEntry(kind="lineage.branched", data=data, model=model)
    (entry,) = place_entries(conversation=own, entries=[marker])
    TallyLine.objects.create(root=root, seq=entry.seq, kind=TallyKind.BRANCH, about=about, text=text)
    know_tally(conversation=about.pk, seq=about.at, position=entry.seq)

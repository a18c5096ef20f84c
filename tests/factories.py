"""Plain factories over the product's own actions: never a row that the product could not have made."""

from itertools import count

from console.access import Who, who_has_token, who_is_user
from console.actions.people import make_user
from console.clock import now
from console.models import Role
from console.secrets import hashed
from documents.actions import create_document, edit_document
from documents.edits import Edit
from documents.models import Document
from lineage.actions.entries import NewEntry, append_entries
from lineage.actions.roots import create_root
from lineage.actions.tokens import make_token
from lineage.models import Conversation, Kind, Root
from lineage.queries import fork_path

_numbers = count(1)


def make_person(name: str = "mira", *, superuser: bool = False) -> Who:
    """A person with an account."""
    return who_is_user(make_user(username=f"{name}{next(_numbers)}", superuser=superuser))


def make_root(who: Who | None = None, title: str = "Checkout service", folder: str = "") -> Root:
    """A root owned by `who` (default: a new person)."""
    return create_root(who=who or make_person(), title=title, folder=folder)


def make_agent(root: Root, name: str = "wren", *, role: Role = Role.AGENT, main: bool = False) -> tuple[Who, str]:
    """A token of the root with a session of its own: who it is, and its secret."""
    made = make_token(who=None, name=name, root=root.pk, role=role, main=main)
    who = who_has_token(hashed(made.secret))
    assert who is not None
    return who, made.secret


def make_session(root: Root, name: str = "wren") -> Conversation:
    """A session in the root, through the token of an agent."""
    who, _ = make_agent(root, name)
    assert who.conversation is not None
    return Conversation.objects.get(pk=who.conversation)


def say(who: Who, conversation: int, *texts: str, end: bool = True) -> list[int]:
    """A prompt and answers as an outside runner appends them; answers the seqs."""
    asked = [{"role": "user", "content": texts[0]}]
    entries = [NewEntry(kind="user", model=asked, prompt=texts[0], author=who.actor)]
    entries += [
        NewEntry(kind="assistant", model=[{"role": "assistant", "content": text}], author=who.actor)
        for text in texts[1:]
    ]
    if end:
        entries.append(NewEntry(kind="turn_end", author=who.actor))
    return append_entries(who=who, conversation=conversation, entries=entries)


def make_document(who: Who, conversation: int, text: str = "one\ntwo\nthree\n", title: str = "Plan") -> Document:
    """A document of the conversation."""
    return create_document(who=who, conversation=conversation, title=title, text=text)


def change(who: Who, document: int, old: str, new: str, request_id: str | None = None) -> int:
    """One edit, recorded; answers its revision."""
    edits = [Edit(old_string=old, new_string=new)]
    return edit_document(who=who, document=document, edits=edits, request_id=request_id).revision


def make_fork(source: Conversation, at: int) -> Conversation:
    """A branch of `source` at its visible entry `at`, as the tree keeps it."""
    moment = now()
    return Conversation.objects.create(
        kind=Kind.BRANCH,
        root_id=source.root_id,
        parent=source,
        at=at,
        head=at,
        path=fork_path(source, at),
        title=f"fork at {at}",
        created=moment,
        touched=moment,
        state_since=moment,
    )

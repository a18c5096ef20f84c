"""Making roots and sessions (L1, L13)."""

from django.db import connection, transaction

from console.access import Who
from console.clock import now
from console.errors import Forbidden, Invalid
from console.events import AccessChanged, publish_on_commit
from console.json_text import one_line, storable
from console.models import Actor, Membership, Role, Touched
from console.requests import checked_request_id, remember, remembered
from documents.actions.documents import checked_title
from lineage.models import Conversation, Kind, Root, TitleSource
from lineage.models.conversations import FOLDER_LENGTH, TITLE_LENGTH


def create_root(
    *, who: Who | None, title: str, folder: str = "", source: str = "console", request_id: str | None = None
) -> Root:
    """An empty root; it writes no entry (L13). A person becomes its owner; tokens make no roots (S2).

    `who` is none for commands of the administrator: superusers see every root.
    """
    if who is not None and who.token is not None:
        raise Forbidden("A token belongs to one root and makes no others. Sign in, or use the command token.")
    request_id = checked_request_id(request_id)
    title = checked_title(title)
    folder = checked_folder(folder)
    moment = now()
    with transaction.atomic():
        receiver = f"roots:{who.actor if who else 0}"
        if who is not None:
            _lock_actor(who.actor)
        first = remembered(receiver=receiver, actor=who.actor if who else None, request_id=request_id)
        if first is not None:
            return Root.objects.select_related("conversation").get(pk=first)
        with connection.cursor() as cursor:
            cursor.execute("SELECT nextval(pg_get_serial_sequence('lineage_conversation', 'id'))")
            (number,) = cursor.fetchone() or (0,)
        root = Root.objects.create(conversation_id=number)
        root.conversation = Conversation.objects.create(
            pk=number,
            kind=Kind.ROOT,
            root=root,
            title=title,
            title_source=TitleSource.PERSON if title else TitleSource.NONE,
            folder=folder,
            source=source,
            created=moment,
            touched=moment,
            state_since=moment,
        )
        if who is not None:
            Membership.objects.create(root=root, actor_id=who.actor, role=Role.OWNER, created=moment)
            publish_on_commit("access", AccessChanged(actor=who.actor))
        Touched.objects.create(conversation=number)
        remember(receiver=receiver, actor=who.actor if who else None, request_id=request_id, result=number)
    return root


def create_session(*, root: Root, title: str, folder: str = "", source: str = "http") -> Conversation:
    """A session in a root that the caller has locked in its transaction: of an outside agent, neither fork nor owned (L1).

    It leaves a marker in the root, and knows the tally as far as that reaches now (L16).
    """
    from lineage.actions.joining import mark_session  # entries stand above this module

    moment = now()
    session = Conversation.objects.create(
        kind=Kind.SESSION,
        root=root,
        title=one_line(title, TITLE_LENGTH),
        title_source=TitleSource.PERSON if title else TitleSource.NONE,
        folder=folder,
        source=source,
        created=moment,
        touched=moment,
        state_since=moment,
    )
    Touched.objects.create(conversation=session.pk)
    mark_session(root=root, session=session)
    return session


def lock_root(root: int) -> Root:
    """Lock the root until the transaction ends; first in the lock order (R5)."""
    return Root.objects.select_for_update(of=("self",), no_key=True).select_related("conversation").get(pk=root)


def checked_folder(folder: str) -> str:
    """The working folder's path as given; its existence is asked when something is to run there (L12)."""
    if len(folder) > FOLDER_LENGTH or "\0" in folder:
        raise Invalid("folder", f"A folder is a path of at most {FOLDER_LENGTH} characters without U+0000.")
    return storable(folder)


def _lock_actor(actor: int) -> None:
    Actor.objects.select_for_update(no_key=True).get(pk=actor)

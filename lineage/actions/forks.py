"""The row of a fork (L3): it refers to its parent's entries up to its fork entry, and nothing is copied."""

from django.db import connection

from console.clock import now
from console.errors import Invalid
from console.models import Touched
from lineage.models import Conversation, Delivered, Kind, State, TitleSource
from lineage.queries import fork_path


def fork_conversation(
    *,
    source: Conversation,
    at: int,
    title: str = "",
    title_source: TitleSource = TitleSource.NONE,
    intent: str = "",
    started_by: int | None = None,
    started_from: int | None = None,
    folder: str | None = None,
    model: str | None = None,
    thinking: str | None = None,
    origin: str = "console",
    allow_none: bool = False,
) -> Conversation:
    """A branch that goes on counting from `at`; the caller has locked `source` in its transaction.

    Model, thinking and folder default to the source's (L12). It starts with its source's map of delivered answers (L23).
    `origin` says where the branch comes from; with `allow_none` it may inherit nothing (`at` 0: a rewind to the start).
    Refusal: `invalid` where `at` is not visible.
    """
    if at or not allow_none:
        check_visible(source, at)
    moment = now()
    fork = Conversation.objects.create(
        kind=Kind.BRANCH,
        root_id=source.root_id,
        parent=source,
        at=at,
        head=at,
        path=fork_path(source, at),
        title=title,
        title_source=title_source,
        intent=intent,
        started_by_id=started_by,
        started_from_id=started_from,
        folder=source.folder if folder is None else folder,
        model=source.model if model is None else model,
        thinking=source.thinking if thinking is None else thinking,
        source=origin,
        state=State.IDLE,
        state_since=moment,
        created=moment,
        touched=moment,
    )
    Touched.objects.create(conversation=fork.pk)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {Delivered._meta.db_table} (caller_id, target_id, answer) "  # noqa: S608 - a table's own name
            f"SELECT %s, target_id, answer FROM {Delivered._meta.db_table} WHERE caller_id = %s",
            [fork.pk, source.pk],
        )
    return fork


def check_visible(conversation: Conversation, at: int) -> None:
    """Refuse an entry number that the conversation does not show."""
    if not 1 <= at <= conversation.head:
        has = f"its entries are 1 to {conversation.head}" if conversation.head else "it has no entries yet"
        raise Invalid("at", f"#{conversation.pk} shows no entry {at}: {has}.", head=conversation.head)

"""*landing-note*: tells an ordinary root of a landing, as a write that waits its turn (L20). It asks again whether the root has
become a tally: then the note is placed as one."""

from console.requests import remember, remembered
from lineage.actions.landings import LANDER, landing_key, landing_note, place_landing
from lineage.actions.notes import NewNote, enqueue_note
from lineage.actions.runs import advance
from lineage.models import Landing, NoteSource
from lineage.tasks.definitions import Definition, register_kind
from lineage.tasks.running import Run


def deliver(run: Run) -> None:
    """Once, by the landing's own key."""
    landing = Landing.objects.get(pk=run.input["landing"])
    with run.commit(root=landing.root_id, conversations=[landing.root_id]) as commit:
        assert commit.root is not None
        own = commit.conversations[landing.root_id]
        receiver, key = f"conversation:{own.pk}", landing_key(landing)
        placed = place_landing(root=commit.root, own=own, landing=landing)
        if placed is None and remembered(receiver=receiver, actor=None, request_id=key) is None:
            text, data = landing_note(landing)
            note = NewNote(
                source=NoteSource.LANDER,
                text=text,
                message=f"{LANDER}{text}",
                data=data,
                sender=landing.conversation_id,
                title=landing.title,
                author=landing.author_id,
            )
            submission = enqueue_note(conversation=own, new=note)
            advance(conversation=own)
            remember(receiver=receiver, actor=None, request_id=key, result=submission.pk)
        commit.complete({"entry": placed})


LANDING_NOTE = register_kind(
    Definition(kind="landing-note", version=1, first="deliver", phases={"deliver": deliver}, foreground=False)
)

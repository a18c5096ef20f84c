"""The scripted run of the demo: a transcript that grows line by line, while the agent edits the document."""

import threading
from pathlib import Path
from time import monotonic

from django.db import connection

from console.clock import now
from console.demo.loading import Demo, session_file
from console.demo.story import DOCUMENT_EDITS, customs_forms
from console.errors import DomainError
from console.models import User
from documents.access import document_for
from documents.actions.editing import edit_document
from documents.edits import Edit
from documents.texts import text_at

LINE_SECONDS = 3.0  # between two lines: slow enough to watch, fast enough not to wait for
AFTER_SIGNIN = 4.0  # seconds that a newcomer has to look around


def play_when_seen(demo: Demo, stopped: threading.Event, line_seconds: float = LINE_SECONDS) -> None:
    """One run, for a thread of its own: it begins when somebody can watch."""
    try:
        wait_for_someone(stopped)
        if not stopped.is_set():
            play_run(demo, stopped, line_seconds=line_seconds)
    finally:
        connection.close()


def wait_for_someone(stopped: threading.Event) -> None:
    """Until somebody has signed in: a run that nobody can see shows nothing."""
    while not stopped.is_set() and not User.objects.filter(last_login__isnull=False).exists():
        stopped.wait(1.0)
    stopped.wait(AFTER_SIGNIN)


def play_run(demo: Demo, stopped: threading.Event, *, line_seconds: float = LINE_SECONDS) -> Path:
    """Write the next run's transcript and edit the document beside it; answers the file. Ends early when stopped."""
    number = _next_number(demo.transcripts)
    session = customs_forms(now(), number)
    path = session_file(demo.transcripts, session)
    edits = list(DOCUMENT_EDITS)
    began = monotonic()
    speed = LINE_SECONDS / line_seconds if line_seconds else 0.0
    with path.open("ab", buffering=0) as file:
        for index in range(len(session.lines)):
            # The clock of the story runs with ours.
            session.lines[index] = _dated(session.lines[index], now().isoformat(timespec="milliseconds"))
            file.write(session.encoded(index, index + 1))
            while edits and (not speed or edits[0][0] <= (monotonic() - began) * speed):
                _edit(demo, number, *edits.pop(0)[1:])
            if stopped.wait(line_seconds):
                return path
    for _, old, new in edits:
        _edit(demo, number, old, new)
    return path


def _edit(demo: Demo, number: int, old: str, new: str) -> None:
    """One edit of the agent, unless an earlier run made it. Someone may have rewritten its place: then it is refused, and
    shown as refused."""
    row = document_for(demo.agent, demo.document)
    if new in text_at(row, row.revision):
        return
    try:
        edit_document(
            who=demo.agent,
            document=demo.document,
            edits=[Edit(old_string=old, new_string=new)],
            request_id=f"demo:{number}:{old}"[:200],
        )
    except DomainError as refusal:
        if refusal.code not in {"absent", "ambiguous"}:
            raise


def _dated(line: dict[str, object], time: str) -> dict[str, object]:
    return line | {"timestamp": time.replace("+00:00", "Z")} if "timestamp" in line else line


def _next_number(transcripts: Path) -> int:
    number = 1
    while session_file(transcripts, customs_forms(now(), number)).exists():
        number += 1
    return number

"""Loads the sample tree, through the actions and the importer that real work takes. Loading again changes nothing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.access import Who, who_has_token
from console.clock import now
from console.data import data_dir
from console.demo.acting import PROMPT, README, TITLE, start_demo_run
from console.demo.story import DOCUMENT, DOCUMENT_TITLE, ROOT_TITLE, carrier_webhooks, slow_status_page
from console.demo.writing import Session, session_id
from console.models import Role, Token
from documents.actions.documents import create_document
from lineage.actions.abstracts import write_abstract
from lineage.actions.branches import start_branch
from lineage.actions.entries import NewEntry, append_entries
from lineage.actions.landings import NewLanding, record_landing
from lineage.actions.memory import apply_memory_ops
from lineage.actions.notes import leave_note
from lineage.actions.roots import create_root
from lineage.actions.tokens import make_token
from lineage.models import Entry
from lineage.tasks.working import run_due
from lineage.transcripts.folders import find_folders
from lineage.transcripts.importing import import_folders

AGENT = "moss"


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What was loaded: numbers of the root and the document, the agent that acts, and where its transcripts lie."""

    root: int
    document: int
    agent: Who
    transcripts: Path


def demo_folder() -> Path:
    """Where the demo's files lie: in the data directory."""
    return data_dir() / "demo"


def load_demo(folder: Path) -> Demo:
    """Load the tree whose files lie in `folder`; made when it is missing."""
    work, transcripts = folder / "parcels", folder / "transcripts"
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (work / "README.md").exists():  # what was approved stays
        (work / "README.md").write_text(README)
    root = create_root(who=None, title=ROOT_TITLE, folder=str(work), request_id="demo").pk
    agent = _agent(root)
    document = create_document(
        who=agent, conversation=root, title=DOCUMENT_TITLE, text=DOCUMENT, request_id="demo:plan"
    ).pk
    _grow_tally(agent, root)
    moment = now()
    for session in (*slow_status_page(moment), *carrier_webhooks(moment)):
        write_session(transcripts, session)
    list(import_folders(find_folders([transcripts])[0], root=root))  # read as they are asked for
    start_demo_run(conversation=_begin(agent, root, "readme", PROMPT, TITLE))
    return Demo(root=root, document=document, agent=agent, transcripts=transcripts)


def session_file(transcripts: Path, session: Session) -> Path:
    """Where the session's transcript lies: as Claude Code lays them out, subagents beside their owner's file."""
    if session.agent:
        return transcripts / session_id(session.owner) / "subagents" / f"agent-{session.agent}.jsonl"
    return transcripts / f"{session_id(session.name)}.jsonl"


def write_session(transcripts: Path, session: Session) -> None:
    """Write a whole session once: an existing file keeps its times, so that a second load finds nothing new."""
    path = session_file(transcripts, session)
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(session.encoded())


def _agent(root: int) -> Who:
    """The agent of the demo. Its token's secret is thrown away: nobody signs in with it."""
    token = Token.objects.filter(root=root, actor__name=AGENT, role=Role.AGENT, revoked__isnull=True).first()
    who = who_has_token(
        token.secret_hash if token else make_token(who=None, name=AGENT, root=root, main=True).token.secret_hash
    )
    assert who is not None
    return who


def _grow_tally(agent: Who, root: int) -> None:
    """Three branches: one landed and frozen, one whose abstract still changes, one that an agent of the first started."""
    labels = _branch(
        agent,
        root,
        "labels",
        "Print labels in one go instead of one request each.",
        "Print labels in batches",
        "A batch renders 100 labels in 1.4 s; one request each took 38 s. The printer takes one file of many pages.",
    )
    _abstract(agent, labels, "labels", "Labels are rendered in batches of 100, in one file.", "Print labels in batches")
    record_landing(
        who=agent,
        conversation=labels,
        new=NewLanding(
            at=2,
            sha="4f1c2aa90b7d3e5f60718293a4b5c6d7e8f90a1b",
            base="9b0d7c6e5f4a39281706f5e4d3c2b1a098765432",
            target="main",
            commits=[
                {"sha": "77aa21c0d4e5f60718293a4b5c6d7e8f90a1b2c3", "subject": "Render labels in batches of 100"},
                {"sha": "4f1c2aa90b7d3e5f60718293a4b5c6d7e8f90a1b", "subject": "Send the printer one file"},
            ],
            paths=["shipping/labels.py", "shipping/printer.py", "tests/test_labels.py"],
            divergence={"ahead": 2, "behind": 0},
            title="Print labels in batches",
            summary="Thirty-eight seconds became one and a half.",
            feature="labels",
            lander="mira",
        ),
        request_id="demo:landing",
    )
    search = _branch(
        agent,
        root,
        "search",
        "Find a parcel by any part of its number.",
        "Search by part of a number",
        "A trigram index finds any four digits in 6 ms over 4 million parcels. Three digits need a scan: I would refuse those.",
    )
    _abstract(
        agent,
        search,
        "search",
        "A trigram index answers in 6 ms from four digits on. Open: whether three digits are refused or scanned.",
        "Search by part of a number",
    )
    leave_note(
        who=agent,
        to="root",
        text="The events table is migrated on Thursday; no branch should touch it before.",
        sender=agent.conversation,
        request_id="demo:note",
    )
    apply_memory_ops(who=agent, root=root, ops=MEMORIES, request_id="demo:memory")


def _branch(agent: Who, root: int, key: str, prompt: str, title: str, answer: str) -> int:
    branch = _begin(agent, root, key, prompt, title)
    entries = [
        NewEntry(kind="assistant", model=[{"role": "assistant", "content": answer}], author=agent.actor),
        NewEntry(kind="turn_end", author=agent.actor),
    ]
    append_entries(who=agent, conversation=branch, entries=entries, request_id="demo:answer")
    return branch


def _begin(agent: Who, root: int, key: str, prompt: str, title: str) -> int:
    branch = start_branch(who=agent, source=root, prompt=prompt, title=title, request_id=f"demo:{key}")
    while not Entry.objects.filter(conversation=branch, kind="user").exists() and run_due():
        pass  # its prompt is placed before it is answered
    return branch


def _abstract(agent: Who, branch: int, feature: str, text: str, title: str) -> None:
    write_abstract(who=agent, conversation=branch, text=text, title=title, feature=feature, request_id="demo:abstract")


MEMORIES: list[dict[str, Any]] = [
    {
        "op": "add",
        "slug": "webhooks-are-rows",
        "kind": "decision",
        "line": "A webhook is a row before it is answered",
        "body": "A carrier gets its 200 only after the row is committed. A worker takes what is due and skips locked rows.",
    },
    {
        "op": "add",
        "slug": "carriers-send-twice",
        "kind": "fact",
        "line": "Carriers send an event again when we take longer than 5 s",
        "body": "Seen with two of seven carriers. The event id stays the same.",
    },
    {
        "op": "add",
        "slug": "measure-with-many-legs",
        "kind": "lesson",
        "line": "Measure with 60 legs, not with two",
        "body": "The slow status page was fast in every test, since the factory made parcels of two legs.",
    },
]

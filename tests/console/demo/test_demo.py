"""The demo: loading is idempotent, the run plays into a growing file and the document (CONTRACT, `up --demo`)."""

import json
import threading
from pathlib import Path

import pytest

from console.demo import acting
from console.demo.loading import load_demo
from console.demo.playing import play_run
from console.demo.story import DOCUMENT, DOCUMENT_EDITS
from documents.edits import Edit, apply_edits
from documents.models import Document, EditBatch
from documents.texts import text_at
from lineage.actions.approvals import decide_approval
from lineage.models import Approval, Conversation, Entry, Kind, Landing, Memory, Root, State, Submission
from lineage.transcripts.folders import find_folders
from lineage.transcripts.importing import import_folders
from tests.factories import make_person
from tests.lineage.working import work

pytestmark = pytest.mark.django_db(transaction=True)


def _counts() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Conversation, Entry, Landing, Memory, Document, EditBatch))


def test_loading_again_changes_nothing(tmp_path: Path) -> None:
    demo = load_demo(tmp_path)
    first = _counts()
    assert load_demo(tmp_path) == demo
    assert _counts() == first


def test_the_sample_tree_shows_what_the_console_is_for(tmp_path: Path) -> None:
    demo = load_demo(tmp_path)
    root = Root.objects.get(pk=demo.root)
    assert root.is_tally
    tree = Conversation.objects.filter(root=root)
    assert tree.get(title="Make the status page fast").kind == Kind.SESSION
    assert tree.filter(kind=Kind.BRANCH, source="claude").count() == 2  # two rewinds of one question
    assert tree.filter(kind=Kind.AGENT).count() == 1
    assert tree.get(title="Retry carrier webhooks").state == State.ANSWER
    assert Entry.objects.filter(conversation__root=root, head__isnull=False, conversation__source="claude").count() == 1
    assert Landing.objects.get().title == "Print labels in batches"
    assert Memory.objects.count() == 3


@pytest.mark.parametrize("decision", ["approve", "decline"])
def test_an_edit_waits_for_a_person_without_any_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decision: str
) -> None:
    monkeypatch.setattr(acting, "WORD_SECONDS", 0)
    demo = load_demo(tmp_path)
    work()
    branch = Conversation.objects.get(root=demo.root, title=acting.TITLE)
    waiting = Approval.objects.get(conversation=branch, status="waiting")
    assert (waiting.tool, branch.state) == ("edit_file", State.APPROVAL)
    assert load_demo(tmp_path) == demo
    decide_approval(who=make_person("newcomer", superuser=True), approval=waiting.pk, decision=decision)
    work()
    branch.refresh_from_db()
    last = Entry.objects.filter(conversation=branch, kind="assistant").order_by("-seq")[0]
    readme = (tmp_path / "parcels" / "README.md").read_text()
    assert branch.state == State.IDLE
    assert Submission.objects.get(conversation=branch).status == "done"
    assert ("tried again after" in readme) == (decision == "approve")
    assert ("left the README" in last.model) == (decision == "decline")
    load_demo(tmp_path)
    work()
    assert (tmp_path / "parcels" / "README.md").read_text() == readme
    assert Approval.objects.count() == 1


def test_a_run_streams_and_edits(tmp_path: Path) -> None:
    demo = load_demo(tmp_path)
    path = play_run(demo, threading.Event(), line_seconds=0)
    lines = path.read_bytes().splitlines()
    assert all(json.loads(line) for line in lines)
    list(import_folders(find_folders([demo.transcripts])[0], root=demo.root))
    live = Conversation.objects.get(root=demo.root, title="Customs forms as PDF")
    assert (live.kind, live.state) == (Kind.SESSION, State.IDLE)
    wanted = apply_edits(DOCUMENT, [Edit(old_string=old, new_string=new) for _, old, new in DOCUMENT_EDITS])
    row = Document.objects.get(pk=demo.document)
    assert text_at(row, row.revision) == wanted
    again = play_run(demo, threading.Event(), line_seconds=0)
    assert again != path
    assert Document.objects.get(pk=demo.document).revision == row.revision  # what the first run wrote is there


def test_an_edit_whose_place_is_gone_is_left_out(tmp_path: Path) -> None:
    demo = load_demo(tmp_path)
    from documents.actions.editing import edit_document

    edit_document(
        who=demo.agent, document=demo.document, edits=[Edit(old_string="## Going back", new_string="## Gone")]
    )
    edit_document(who=demo.agent, document=demo.document, edits=[Edit(old_string="To be written.\n", new_string="\n")])
    play_run(demo, threading.Event(), line_seconds=0)
    row = Document.objects.get(pk=demo.document)
    assert "CN23" in text_at(row, row.revision)
    assert "STATUS_FROM_EVENTS" not in text_at(row, row.revision)

"""A restored tree runs nothing: what was under way says so, and nothing of it is lost (C5, L27)."""

from pathlib import Path

import pytest
from pytest_django import Settings

from console.archive.exporting import export_root
from console.archive.moving import WHY
from console.archive.restoring import restore_root
from documents.attachments.storing import attachments_folder
from documents.models import Attachment
from lineage.actions.approvals import approve_always
from lineage.actions.attachments import upload_attachment
from lineage.actions.notes import leave_note
from lineage.models import (
    Approval,
    Conversation,
    Draft,
    Entry,
    LoadReceipt,
    ModelRequest,
    Rule,
    Submission,
    SubmissionStatus,
    Task,
    TaskStatus,
)
from tests.console.archive.trees import forget_everything
from tests.console.test_verify import verify
from tests.factories import make_agent, make_person, make_root, say
from tests.lineage.agent.conftest import model as model
from tests.lineage.agent.fakemodel import FakeModel
from tests.lineage.agent.test_approvals import EDIT, calls, command, waiting
from tests.lineage.agent.test_turns import ask
from tests.lineage.working import work

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_was_under_way_ends(model: FakeModel, tmp_path: Path, settings: Settings) -> None:
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    mira = make_person()
    root = make_root(mira, folder=str(tmp_path))
    calls(model, EDIT, command("true"))
    ask(mira, root.conversation)
    work()
    approve_always(who=mira, approval=Approval.objects.get(tool="run_command").pk)
    call = waiting(root.conversation)
    ask(mira, root.conversation, "And then?")
    leave_note(who=mira, to=root.pk, text="Mind the cents.")
    task = Task.objects.get(kind="generation")
    Draft.objects.create(
        conversation=root.conversation,
        task=task,
        request="r",
        blocks='[{"type":"text","text":"I thi"}]',
        began=call.asked,
    )
    wren, _ = make_agent(root, "wren")
    assert wren.conversation is not None
    say(wren, wren.conversation, "Go.", "Going.", end=False)
    leave_note(who=mira, to=wren.conversation, text="For wren.")
    upload_attachment(who=mira, conversation=root.pk, filename="a.md", chunks=[b"# A"])
    lost = upload_attachment(who=mira, conversation=root.pk, filename="b.md", chunks=[b"# B"])
    (attachments_folder() / lost.name).unlink()
    kept = [Rule.objects.count(), ModelRequest.objects.count(), LoadReceipt.objects.count()]
    assert all(kept)
    export_root(root=root.pk, path=tmp_path / "tree.zip")
    forget_everything()
    restore_root(path=tmp_path / "tree.zip")

    assert [Rule.objects.count(), ModelRequest.objects.count(), LoadReceipt.objects.count()] == kept
    live = Task.objects.exclude(status=TaskStatus.TERMINAL)
    assert [task.kind for task in live] == ["extract"]  # no agent's work: nothing else would ever read the file
    assert Task.objects.filter(kind="generation").values_list("outcome", "error").get() == ("aborted", WHY)
    ended = Approval.objects.get(tool="edit_file")
    assert (ended.status, ended.comment, ended.decided_by) == ("ended", WHY, None)
    inputs = Submission.objects.filter(type="input").values_list("status", "reason")
    assert set(inputs) == {(SubmissionStatus.UNANSWERED, "restored")}
    assert inputs.count() == 2
    assert not Draft.objects.exists()
    placed = Entry.objects.filter(conversation=root.pk).order_by("-seq").values_list("kind", "outcome")[:2]
    assert list(placed) == [("lineage.note", ""), ("assistant", "aborted")]
    states = Conversation.objects.order_by("pk").values_list("state", "turn_open")
    assert list(states) == [("idle", False), ("idle", False)]
    assert Submission.objects.get(conversation=wren.conversation).status == SubmissionStatus.QUEUED  # mail waits
    work()
    files = Attachment.objects.order_by("pk").values_list("status", "reason")
    assert list(files) == [("extracted", ""), ("unreadable", "its file was not in the export")]
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    _, said = verify()
    assert {line.split(": ")[0] for line in said.splitlines()} == {f"attachment {lost.name}"}  # as before the export

"""Uploading and extracting attachments (D18, D21, D22)."""

from pathlib import Path

import pytest
from pytest_django import Settings

from console.errors import DomainError, Forbidden, NotFound, TooLarge
from console.models import Role
from documents.attachments import limits, storing
from documents.attachments.access import attachment_for, read_attachment
from documents.attachments.limits import EXTRACTION_CHARS
from documents.attachments.names import is_issued
from documents.attachments.storing import attachments_folder, check_attachments
from documents.models import Attachment, AttachmentStatus, FolderMark
from lineage.actions.attachments import upload_attachment
from lineage.models import Conversation
from lineage.state import conversation_state
from lineage.tasks.working import run_due
from tests.documents.attachments.files import encrypted_pdf_bytes, pdf_bytes, xlsx_bytes, zip_bomb_bytes
from tests.factories import make_agent, make_person, make_root

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> Path:
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"
    return tmp_path / "attachments"


def test_an_upload_is_extracted_once_and_read_by_the_tree(folder: Path) -> None:
    owner = make_person()
    root = make_root(owner)
    agent, _ = make_agent(root)
    made = upload_attachment(
        who=owner, conversation=root.pk, filename="C:\\plans\\Plan é.md", chunks=[b"# Pl", b"an\n"]
    )
    assert is_issued(made.name)
    assert (made.filename, made.size, made.status) == ("Plan é.md", 7, AttachmentStatus.PENDING)
    with pytest.raises(DomainError) as refused:
        read_attachment(who=agent, name=made.name)
    assert refused.value.code == "pending"
    assert run_due() == 1
    row = attachment_for(agent, f" {made.name} ")
    assert (row.status, row.chars, row.media_type) == (AttachmentStatus.EXTRACTED, 7, "text/markdown")
    assert read_attachment(who=agent, name=made.name).text == "# Plan\n"
    (shown,) = conversation_state(Conversation.objects.get(pk=root.pk))["attachments"]
    assert (shown["name"], shown["status"]) == (made.name, "extracted")
    (folder / made.name).unlink()
    assert read_attachment(who=agent, name=made.name).total_chars == 7


def test_an_unreadable_one_says_why() -> None:
    owner = make_person()
    root = make_root(owner)
    made = upload_attachment(who=owner, conversation=root.pk, filename="empty.txt", chunks=[])
    run_due()
    assert attachment_for(owner, made.name).reason == "an empty file"
    with pytest.raises(DomainError, match="an empty file") as refused:
        read_attachment(who=owner, name=made.name)
    assert refused.value.code == "unreadable"


@pytest.mark.parametrize(
    ("filename", "content", "reason"),
    [
        ("locked.pdf", encrypted_pdf_bytes(), "an encrypted PDF that asks for a password"),
        ("bomb.docx", zip_bomb_bytes(), "zip bomb"),
        ("empty.txt", b"", "an empty file"),
        ("cut.pdf", pdf_bytes("First page")[:200], "a damaged PDF"),
    ],
)
def test_each_bad_file_of_its_kind_is_a_status(filename: str, content: bytes, reason: str) -> None:
    """D18, D22: through the real child, as lists and readers meet it."""
    owner = make_person()
    made = upload_attachment(who=owner, conversation=make_root(owner).pk, filename=filename, chunks=[content])
    run_due()
    row = attachment_for(owner, made.name)
    assert (row.status, row.chars) == (AttachmentStatus.UNREADABLE, 0)
    assert reason in row.reason
    with pytest.raises(DomainError) as refused:
        read_attachment(who=owner, name=made.name)
    assert (refused.value.code, refused.value.facts["reason"]) == ("unreadable", row.reason)


@pytest.mark.parametrize(
    ("filename", "content", "chars", "cut"),
    [
        ("table.docx", xlsx_bytes(), 38, False),  # the wrong extension misleads nobody
        ("whole.txt", b"x" * EXTRACTION_CHARS, EXTRACTION_CHARS, False),
        ("long.txt", b"x" * (EXTRACTION_CHARS + 1), EXTRACTION_CHARS, True),
    ],
)
def test_a_wrong_extension_and_a_long_text_are_read(filename: str, content: bytes, chars: int, cut: bool) -> None:
    """D19: what was cut is said on every page, the last one too."""
    owner = make_person()
    made = upload_attachment(who=owner, conversation=make_root(owner).pk, filename=filename, chunks=[content])
    run_due()
    row = attachment_for(owner, made.name)
    assert (row.status, row.chars, row.truncated) == (AttachmentStatus.EXTRACTED, chars, cut)
    last = read_attachment(who=owner, name=made.name, offset=chars - 1)
    assert (last.total_chars, len(last.text), last.truncated, last.extract_truncated) == (chars, 1, False, cut)


def test_a_wrong_name_and_a_strangers_look_the_same() -> None:
    """D21, and the order of D20: access comes before the offset."""
    owner = make_person()
    made = upload_attachment(who=owner, conversation=make_root(owner).pk, filename="a.txt", chunks=[b"x"])
    stranger = make_person("stranger")
    wrong = "0" * 32 + ".txt"
    sentences = set()
    for name in (made.name, wrong, f"../{wrong}"):
        with pytest.raises(NotFound) as refused:
            read_attachment(who=stranger, name=name, offset=-1)
        sentences.add(refused.value.message.replace(name, "N"))
    assert len(sentences) == 1


def test_a_viewer_uploads_nothing() -> None:
    root = make_root()
    viewer, _ = make_agent(root, role=Role.VIEWER)
    with pytest.raises(Forbidden):
        upload_attachment(who=viewer, conversation=root.pk, filename="a.txt", chunks=[b"x"])
    assert not Attachment.objects.exists()


def test_a_repeat_keeps_one(folder: Path) -> None:
    """R4."""
    owner = make_person()
    root = make_root(owner)
    first = upload_attachment(who=owner, conversation=root.pk, filename="a.txt", chunks=[b"x"], request_id="r")
    again = upload_attachment(who=owner, conversation=root.pk, filename="b.txt", chunks=[b"y"], request_id="r")
    assert first == again
    assert Attachment.objects.count() == 1
    assert run_due() == 1
    assert sorted(path.name for path in folder.iterdir()) == [first.name, f"{first.name}.extracted"]


def test_a_file_over_the_limit_is_refused_and_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = make_person()
    root = make_root(owner)
    monkeypatch.setattr(storing, "UPLOAD_BYTES", 10)
    upload_attachment(who=owner, conversation=root.pk, filename="a.txt", chunks=[b"x" * 10])
    with pytest.raises(TooLarge) as refused:
        upload_attachment(who=owner, conversation=root.pk, filename="a.txt", chunks=[b"x" * 10, b"x"])
    assert refused.value.facts == {"limit": 10, "actual": 11}
    assert len(list(folder.iterdir())) == Attachment.objects.count() == 1
    assert limits.UPLOAD_BYTES == 64 * 1024 * 1024


def test_machines_must_share_the_folder(settings: Settings, tmp_path: Path) -> None:
    """D18: `/readyz` says so."""
    assert check_attachments() == ""
    assert check_attachments() == ""
    assert FolderMark.objects.count() == 1
    settings.ATTACHMENTS_DIR = tmp_path / "another machine's"
    assert "not the one" in check_attachments()
    (tmp_path / "file").write_text("")
    settings.ATTACHMENTS_DIR = tmp_path / "file"
    assert "cannot be used" in check_attachments()
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"
    assert attachments_folder().stat().st_mode & 0o777 == 0o700

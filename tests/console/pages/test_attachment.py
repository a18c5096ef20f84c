"""The page of an attachment (C1, D20, S3)."""

from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from console.access import who_is_user
from console.models import User
from console.shown import thin
from documents.attachments.limits import PAGE_CHARS
from documents.models import Attachment
from lineage.actions.attachments import upload_attachment
from lineage.tasks.working import run_due
from tests.documents.attachments.files import PNG
from tests.factories import make_person, make_root

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, settings: Settings) -> None:
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"


def signed_in(client: Client) -> User:
    user = User.objects.get(actor=make_person().actor)
    client.force_login(user)
    return user


def uploaded(user: User, filename: str, content: bytes) -> Attachment:
    who = who_is_user(user)
    made = upload_attachment(who=who, conversation=make_root(who).pk, filename=filename, chunks=[content])
    run_due()
    return Attachment.objects.get(pk=made.pk)


def test_a_long_text_is_read_part_by_part(client: Client) -> None:
    row = uploaded(signed_in(client), "plan.txt", ("é" * PAGE_CHARS + "<script>alert(1)</script>").encode())
    first = client.get(f"/attachments/{row.name}/").content.decode()
    assert f"Characters 1 to {thin(8000)} of {thin(8025)}" in first
    assert f"?offset={PAGE_CHARS}" in first
    second = client.get(f"/attachments/{row.name}/?offset={PAGE_CHARS}").content.decode()
    assert f"Characters {thin(8001)} to {thin(8025)} of {thin(8025)}" in second
    assert "&lt;script&gt;" in second
    assert "?offset=0" in second


def test_an_offset_past_the_end_is_said(client: Client) -> None:
    row = uploaded(signed_in(client), "plan.txt", b"short")
    page = client.get(f"/attachments/{row.name}/?offset=6")
    assert "lies past the end" in page.content.decode()


def test_what_has_no_text_says_why(client: Client) -> None:
    row = uploaded(signed_in(client), "empty.txt", b"")
    assert "an empty file" in client.get(f"/attachments/{row.name}/").content.decode()


def test_only_pictures_are_shown_and_all_else_is_saved(client: Client) -> None:
    """S3: an uploaded page never runs as one of ours."""
    user = signed_in(client)
    page, picture = uploaded(user, "evil.html", b"<script>alert(1)</script>"), uploaded(user, "shot.png", PNG)
    saved = client.get(f"/attachments/{page.name}/file/")
    assert saved["Content-Type"] == "application/octet-stream"
    assert saved["Content-Disposition"].startswith("attachment")
    assert saved["Content-Security-Policy"].startswith("sandbox")
    assert saved["X-Content-Type-Options"] == "nosniff"
    shown = client.get(f"/attachments/{picture.name}/file/")
    assert (shown["Content-Type"], b"".join(shown.streaming_content)) == ("image/png", PNG)  # type: ignore[attr-defined]
    assert saved.streaming_content  # type: ignore[attr-defined]
    saved.close()


def test_strangers_find_nothing(client: Client) -> None:
    """R7."""
    row = uploaded(signed_in(client), "plan.txt", b"text")
    signed_in(client)
    assert client.get(f"/attachments/{row.name}/").status_code == 404
    assert client.get(f"/attachments/{row.name}/file/").status_code == 404
    client.logout()
    assert client.get(f"/attachments/{row.name}/").status_code == 302

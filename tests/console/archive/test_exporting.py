"""Who gets the file of a tree, and that nothing half is ever left (C5)."""

import io
import zipfile
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from console.archive import api, exporting
from console.archive.exporting import export_for, export_root
from console.errors import DomainError, Forbidden, Invalid, NotFound
from console.models import Role, User
from lineage.actions.members import set_member
from tests.factories import make_agent, make_person, make_root

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> None:
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"


def test_only_who_may_manage_gets_it() -> None:
    owner, operator, stranger = make_person(), make_person(), make_person()
    root = make_root(owner)
    set_member(who=owner, root=root.pk, actor=operator.actor, role=Role.OPERATOR)
    agent, _ = make_agent(root)
    script, _ = make_agent(root, role=Role.OPERATOR)
    for who in (operator, agent, script):
        with pytest.raises(Forbidden):
            export_for(who=who, root=root.pk)
    with pytest.raises(NotFound):
        export_for(who=stranger, root=root.pk)
    for who in (owner, make_person(superuser=True)):
        with export_for(who=who, root=root.pk) as file, zipfile.ZipFile(file) as archive:
            assert archive.testzip() is None


def test_it_is_sent_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an asynchronous iterator, over which this synchronous client complains; the server would gather any other in memory."""
    monkeypatch.setattr(api, "BLOCK", 100)
    owner = make_person()
    root = make_root(owner)
    client = Client()
    client.force_login(User.objects.get(actor=owner.actor))
    answer = client.get(f"/api/roots/{root.pk}/export")
    assert answer.status_code == 200
    with pytest.warns(Warning, match="asynchronous iterators"):
        pieces = list(answer)
    assert len(pieces) > 10
    assert len(b"".join(pieces)) == int(answer["Content-Length"])
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as archive:
        assert "manifest.json" in archive.namelist()
    client.force_login(User.objects.get(actor=make_person().actor))
    assert client.get(f"/api/roots/{root.pk}/export").status_code == 404
    answer.close()


def test_what_is_interrupted_leaves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_root()
    path = tmp_path / "out" / "tree.zip"
    path.parent.mkdir()
    export_root(root=root.pk, path=path)
    before = path.read_bytes()

    def interrupt(table: str, rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_root(root=root.pk, path=path, progress=interrupt)
    assert [found.name for found in path.parent.iterdir()] == ["tree.zip"]
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o600
    for wrong, refusal in ((tmp_path, Invalid), (tmp_path / "no" / "x.zip", Invalid)):
        with pytest.raises(refusal):
            export_root(root=root.pk, path=wrong)
    with pytest.raises(DomainError):
        exporting.export_root(root=root.pk + 1, path=path)

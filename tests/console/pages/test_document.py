"""The page of a document, before its module runs (C1)."""

import json
import re
from html import unescape

import pytest

from console.clock import now
from console.models import Membership, Role
from console.pages.document import BEGINNING
from documents.limits import MAX_LENGTH
from tests.console.pages.conftest import Reader
from tests.factories import change, make_document, make_person, make_root

pytestmark = pytest.mark.django_db(transaction=True)


def boot_of(html: str) -> dict[str, object]:
    found = re.search(r'<script id="document-boot" type="application/json">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    boot: dict[str, object] = json.loads(found[1])
    return boot


def test_it_is_readable_at_once_and_hands_over_what_its_module_needs(reader: Reader) -> None:
    mira = make_person()
    root = make_root(mira)
    document = make_document(mira, root.pk, "\n<b>one</b>\ntwo\n", title="Plan & <b>more</b>")
    change(mira, document.pk, "two", "2")
    html = reader(mira).get(f"/documents/{document.pk}/").content.decode()
    assert boot_of(html) == {
        "id": document.pk,
        "title": "Plan & <b>more</b>",
        "revision": 1,
        "actor": mira.actor,
        "name": mira.name,
        "can_edit": True,
        "root": root.pk,
    }
    text = re.search(r'<pre class="plain-text"[^>]*>(.*?)</pre>', html, re.DOTALL)
    assert text is not None
    assert unescape(text[1]) == "\n" + "\n<b>one</b>\n2\n"  # HTML drops the first line break of a pre
    assert "Restore" in html
    assert "Plan &amp; &lt;b&gt;more&lt;/b&gt;" in html


def test_of_a_long_text_it_holds_the_beginning_and_says_so(reader: Reader) -> None:
    mira = make_person()
    document = make_document(mira, make_root(mira).pk, "x" * MAX_LENGTH)
    html = reader(mira).get(f"/documents/{document.pk}/").content.decode()
    assert "x" * BEGINNING in html
    assert "x" * (BEGINNING + 1) not in html
    assert "Characters 0 to 65\u202f536 of 2\u202f097\u202f152." in html


def test_a_viewer_reads_only(reader: Reader) -> None:
    mira, teo = make_person(), make_person("teo")
    root = make_root(mira)
    document = make_document(mira, root.pk)
    Membership.objects.create(root=root, actor_id=teo.actor, role=Role.VIEWER, created=now())
    html = reader(teo).get(f"/documents/{document.pk}/").content.decode()
    assert boot_of(html)["can_edit"] is False
    assert "Read only, r0" in html
    assert 'id="restore"' not in html


def test_others_are_told_that_there_is_none(reader: Reader) -> None:
    document = make_document(mira := make_person(), make_root(mira).pk)
    stranger = reader(make_person("teo"))
    assert stranger.get(f"/documents/{document.pk}/").status_code == 404
    assert stranger.get("/documents/999999/").status_code == 404
    assert reader(mira).get(f"/documents/{document.pk}/").status_code == 200

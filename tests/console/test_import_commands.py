"""`manage.py import` and `watch` as people meet them."""

import json
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from console.data import CHECKOUT
from console.errors import DomainError
from lineage.models import Conversation, Kind
from tests.console.up import plain_environment
from tests.factories import make_root
from tests.lineage.transcripts.importing import copy_samples
from tests.lineage.transcripts.reading import Script


def told(*words: object) -> list[str]:
    output = StringIO()
    call_command("import", *map(str, words), stdout=output)
    return output.getvalue().splitlines()


@pytest.mark.django_db
def test_import_prints_a_line_for_each_session_and_totals(tmp_path: Path) -> None:
    project = copy_samples(tmp_path, "syn-01-tree", "syn-02-irregular")
    (project / "journal.jsonl").write_text('{"a":1}\n')
    numbers = {}
    lines = told(project)
    for row in Conversation.objects.filter(kind=Kind.SESSION):
        numbers[row.title.split()[0]] = row.pk
    assert lines == [
        f"#{numbers['Discount']} Discount work: 35 entries, 2 branches, 2 subagents",
        f"#{numbers['Line']} Line separator and paragraph and NEL stay inside one JSON line.: 23 entries",
        "2 sessions: 58 new entries, 6 new conversations, 0 unchanged.",
        "5 lines are no JSON object or too long: kept as they are, and shown in their place as unreadable.",
        "1 file is no transcript and left alone.",
    ]
    assert told(project) == [
        f"#{numbers['Discount']} Discount work: nothing new",
        f"#{numbers['Line']} Line separator and paragraph and NEL stay inside one JSON line.: nothing new",
        "2 sessions: 0 new entries, 0 new conversations, 2 unchanged.",
        "1 file is no transcript and left alone.",
    ]


@pytest.mark.django_db
def test_import_puts_sessions_under_the_root_that_is_named(tmp_path: Path) -> None:
    root = make_root()
    project = copy_samples(tmp_path, "syn-01-tree")
    told(project / "syn-01-tree.jsonl", "--root", root.pk)
    assert set(Conversation.objects.values_list("root", flat=True)) == {root.pk}


@pytest.mark.django_db
def test_import_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DomainError, match=r"There is nothing at .*nowhere"):
        told(tmp_path / "nowhere")
    with pytest.raises(DomainError, match="#77"):
        told(tmp_path, "--root", 77)


def test_watch_follows_until_it_is_stopped(tmp_path: Path) -> None:
    """As a process of its own, with engines of its own, as `up --watch` runs it."""
    project = tmp_path / "project"
    watch = subprocess.Popen(
        [sys.executable, str(CHECKOUT / "manage.py"), "watch", str(project), "--data", str(tmp_path / "data")],
        cwd=CHECKOUT,
        env={**plain_environment(), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watch.stdout is not None
    with watch, watch.stdout:
        assert watch.stdout.readline() == f"Following {project}\n"
        script = Script()
        script.prompt("One.")
        project.mkdir()
        (project / "s1.jsonl").write_bytes(script.data())
        assert watch.stdout.readline() == "#2 One.: 1 entry\n"
        script.answer("First.")
        with (project / "s1.jsonl").open("ab") as file:
            file.write(json.dumps(script.lines[-1]).encode() + b"\n")
        assert watch.stdout.readline() == "#2 One.: 1 entry\n"
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(30) == 0

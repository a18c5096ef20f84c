"""T3: the follower brings what agents write, as they write it, and survives what happens to files."""

import json
import queue
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import OperationalError, connection, connections
from watchfiles import Change

from lineage.models import Conversation, Entry, Kind
from lineage.transcripts import following, importing
from lineage.transcripts.folders import default_folders
from lineage.transcripts.following import Follower, follow_until
from lineage.transcripts.importing import Reading
from tests.lineage.transcripts.importing import copy_samples, imported_entries, new_entries
from tests.lineage.transcripts.reading import Script

WAIT = 30.0  # seconds for what takes some hundredths on an idle machine


class Watching:
    """A follower in a thread; `next` waits for the next time that it brought entries."""

    def __init__(self, *paths: Path) -> None:
        self.found: queue.Queue[list[Reading]] = queue.Queue()
        self.looked = threading.Event()
        self.stopped = threading.Event()
        self.follower = Follower(paths)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        try:
            follow_until(self.stopped, self.follower, self.tell)
        finally:
            connection.close()

    def tell(self, readings: list[Reading]) -> None:
        self.looked.set()
        if new_entries(readings):
            self.found.put(readings)

    def next(self) -> list[Reading]:
        return self.found.get(timeout=WAIT)

    def bring(self, count: int) -> None:
        """Wait until so many entries have come in all."""
        while count > 0:
            count -= new_entries(self.next())
        assert count == 0

    def wait_until_watching(self) -> None:
        """The first look comes after the events have begun."""
        assert self.looked.wait(WAIT)

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join(WAIT)
        assert not self.thread.is_alive()


@pytest.fixture
def no_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only events bring anything."""
    monkeypatch.setattr(following, "POLL_S", 3600.0)


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    found = Watching(tmp_path)
    yield found
    found.stop()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_poll")
def test_lines_come_as_they_are_written(tmp_path: Path, watching: Watching) -> None:
    watching.wait_until_watching()
    script = Script()
    script.prompt("One.")
    path = tmp_path / "s1.jsonl"
    path.write_bytes(script.data())
    watching.bring(1)
    session = Conversation.objects.get(kind=Kind.SESSION)
    assert (session.state, session.title) == ("running", "One.")
    begun = len(script.data())
    script.answer("First.")
    data = script.data()[begun:]
    with path.open("ab", buffering=0) as file:
        file.write(data[:40])
        file.write(data[40:])
    watching.bring(1)
    session.refresh_from_db()
    assert session.state == "idle"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_poll")
def test_new_folders_and_agents_are_found(tmp_path: Path, watching: Watching) -> None:
    watching.wait_until_watching()
    copy_samples(tmp_path / "-home-dev-shop", "syn-01-tree")
    watching.bring(35)
    agents = Conversation.objects.filter(kind=Kind.AGENT)
    assert {agent.owner_call for agent in agents} == {"toolu_4", "toolu_k2"}


@pytest.mark.django_db(transaction=True)
def test_what_events_miss_the_poll_finds(tmp_path: Path, watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_may_matter", lambda *_: False)
    monkeypatch.setattr(following, "POLL_S", 0.05)
    script = Script()
    script.prompt("One.")
    (tmp_path / "s1.jsonl").write_bytes(script.data())
    watching.bring(1)


@pytest.mark.django_db(transaction=True)
def test_a_folder_that_comes_later_and_comes_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_S", 0.05)
    later = tmp_path / "later"
    watching = Watching(later)
    try:
        for number in range(3):
            script = Script(f"s{number}")
            script.prompt("One.", at=number)
            later.mkdir()
            (later / f"s{number}.jsonl").write_bytes(script.data())
            watching.bring(1)
            shutil.rmtree(later)
        assert imported_entries().count() == 3
    finally:
        watching.stop()


@pytest.mark.django_db
def test_an_agents_file_waits_for_its_call_but_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "PATIENCE", 3600.0)
    project = copy_samples(tmp_path, "syn-01-tree")
    main = project / "syn-01-tree.jsonl"
    whole = main.read_bytes()
    main.write_bytes(whole[: len(whole) // 3])
    follower = Follower([project])
    assert {reading.file.name for reading in follower.look_at_all()} == {"syn-01-tree.jsonl"}
    assert follower.look_at([]) == []
    assert follower.has_more
    monkeypatch.setattr(importing, "PATIENCE", 0.0)
    assert len(follower.look_at([])) == 2
    assert follower.look_at([]) == []
    agents = Conversation.objects.filter(kind=Kind.AGENT).order_by("pk")
    assert [(agent.owner_at, agent.owner_call) for agent in agents] == [(None, ""), (4, "toolu_k2")]
    main.write_bytes(whole)
    follower.look_at_all()
    assert [(agent.owner_at, agent.owner_call) for agent in agents.all()] == [(13, "toolu_4"), (4, "toolu_k2")]


@pytest.mark.django_db
def test_a_meta_file_that_comes_late_links_its_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "PATIENCE", 0.0)
    script = Script()
    script.prompt("Find them.")
    script.call("t1", "Agent", description="find", prompt="Another text than the agent gets.")
    (tmp_path / "s1.jsonl").write_bytes(script.data())
    side = Script("s1", start=50)
    side.prompt("Look.", parent=None, isSidechain=True, agentId="a1")
    (tmp_path / "s1/subagents").mkdir(parents=True)
    (tmp_path / "s1/subagents/agent-a1.jsonl").write_bytes(side.data())
    follower = Follower([tmp_path])
    follower.look_at_all()
    agent = Conversation.objects.get(kind=Kind.AGENT)
    assert (agent.owner_at, agent.owner_call) == (None, "")
    meta = tmp_path / "s1/subagents/agent-a1.meta.json"
    meta.write_text(json.dumps({"toolUseId": "t1"}))
    follower.look_at(following._changed_files({(Change.added, str(meta))}))
    agent.refresh_from_db()
    assert (agent.owner_at, agent.owner_call) == (2, "t1")


@pytest.mark.django_db
def test_a_database_that_is_away_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script()
    script.prompt("One.")
    (tmp_path / "s1.jsonl").write_bytes(script.data())
    follower = Follower([tmp_path])

    def away(**_: object) -> None:
        raise OperationalError("the server closed the connection")

    with monkeypatch.context() as patch:
        patch.setattr(importing, "take_lines", away)
        patch.setattr(connections, "close_all", lambda: None)  # the test's own transaction lives in it
        assert follower.look_at_all() == []
    assert follower.has_more
    assert not Entry.objects.exists()
    assert new_entries(follower.look_at([])) == 1
    assert not follower.has_more


@pytest.mark.django_db
def test_readers_of_projects_that_rest_are_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "KEPT", 1)
    scripts = {}
    for name in ("one", "two"):
        scripts[name] = Script(name)
        scripts[name].prompt("One.")
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.jsonl").write_bytes(scripts[name].data())
    follower = Follower([tmp_path])
    assert new_entries(follower.look_at_all()) == 2
    for name, script in scripts.items():
        script.answer("First.")
        (tmp_path / name / f"{name}.jsonl").write_bytes(script.data())
    assert new_entries(follower.look_at_all()) == 2
    assert {row.head for row in Conversation.objects.filter(kind=Kind.SESSION)} == {2}


def test_default_folders_are_where_the_agents_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("CODEX_HOME", raising=False)
    found = [path.relative_to(tmp_path).as_posix() for path in default_folders()]
    assert found == [".claude/projects", ".codex/sessions", ".pi/agent/sessions"]
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/srv/claude")
    monkeypatch.setenv("CODEX_HOME", "/srv/codex")
    assert [str(path) for path in default_folders()[:2]] == ["/srv/claude/projects", "/srv/codex/sessions"]

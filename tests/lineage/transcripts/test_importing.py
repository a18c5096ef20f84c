"""T1–T3 with a real database: what an import writes, and that again writes nothing."""

import json
import os
import shutil
from pathlib import Path

import pytest
from django.db import transaction

from lineage.actions.entries import NewEntry, lock_conversation, place_entries
from lineage.actions.imports import raw_line
from lineage.actions.settling import look_again
from lineage.loading import load_context
from lineage.models import (
    Conversation,
    Entry,
    Kind,
    Root,
    State,
    TitleSource,
    TranscriptFile,
    TranscriptFolder,
    TranscriptPiece,
    Usage,
    Wake,
)  # fmt: skip
from tests.factories import make_root
from tests.lineage.transcripts.importing import copy_samples, data_of, import_all, new_entries, stored
from tests.lineage.transcripts.reading import SAMPLES, Script
from tests.lineage.transcripts.test_claude import AMOUNT, BOTH, MAIN

pytestmark = pytest.mark.django_db

TREE = ("syn-01-tree", "syn-02-irregular", "syn-03-resumed", "syn-04-forked")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_samples(tmp_path / "-home-dev-shop", *TREE)


def of(key: str) -> Conversation:
    return Conversation.objects.get(transcript__key=key)


def test_a_project_folder_becomes_a_tree(project: Path) -> None:
    readings = import_all(project)
    assert [reading.failed for reading in readings] == [""] * 6
    (root,) = Root.objects.select_related("conversation")
    assert (root.conversation.title, root.conversation.folder, root.conversation.source) == (
        "shop",
        "/home/dev/shop",
        "import",
    )
    found = stored()
    assert {key: (one.kind, one.parent) for key, one in found.items()} == {
        MAIN: ("session", None),
        AMOUNT: ("branch", (MAIN, 8)),
        BOTH: ("branch", (MAIN, 8)),
        "agent:a1b2c3d": ("agent", None),
        "agent:e4f5a6b": ("agent", None),
        "session:d735ee5a-c9e9-5820-ab5e-ba1e89a833e6": ("session", None),
        "branch:60a07b62-3ea6-5109-a31a-d32c5120cd43": ("branch", (MAIN, 8)),
        "branch:88c13f6b-3687-5a4f-9a32-74325c2e23e6": ("branch", (MAIN, 8)),
    }
    assert found["agent:a1b2c3d"].owner == (BOTH, 13, "toolu_4")
    assert found["agent:e4f5a6b"].owner == ("agent:a1b2c3d", 4, "toolu_k2")
    assert [entry[0] for entry in found[AMOUNT].entries] == [9, 10, 11, 12]
    assert {one.source for one in found.values()} == {"claude"}
    assert {one.folder for one in found.values()} == {"/home/dev/shop"}
    assert set(Conversation.objects.values_list("root", flat=True)) == {root.pk}


def test_titles_and_states_and_clocks(project: Path) -> None:
    import_all(project)
    main = of(MAIN)
    assert (main.title, main.title_source) == ("Discount work", TitleSource.PERSON)
    assert of(AMOUNT).title_source == TitleSource.INTENT
    assert main.state == State.IDLE
    assert not main.turn_open
    assert main.created.isoformat() == "2026-09-01T10:00:02+00:00"
    assert of(BOTH).touched.isoformat() == "2026-09-01T10:06:31+00:00"
    assert Entry.objects.get(conversation=main, seq=1).time == main.created


def test_again_changes_nothing(project: Path) -> None:
    import_all(project)
    before, pieces, version = stored(), TranscriptPiece.objects.count(), TranscriptFolder.objects.get().version
    readings = import_all(project)
    assert new_entries(readings) == 0
    assert [reading.read for reading in readings] == [0] * 6
    assert (stored(), TranscriptPiece.objects.count(), TranscriptFolder.objects.get().version) == (
        before,
        pieces,
        version,
    )


def test_a_touched_file_that_has_nothing_new_changes_nothing(project: Path) -> None:
    import_all(project)
    before = stored()
    for path in project.rglob("*.jsonl"):
        os.utime(path)
    assert new_entries(import_all(project)) == 0
    assert stored() == before


def test_grown_files_bring_only_what_is_new(tmp_path: Path) -> None:
    """Every file in two halves, as if imported while the agents worked."""
    project = copy_samples(tmp_path / "whole", "syn-01-tree", "syn-02-irregular")
    import_all(project)
    whole = stored()
    half = tmp_path / "half"
    half.mkdir()
    for path in sorted(project.rglob("*")):
        target = half / path.relative_to(project)
        if path.is_dir():
            target.mkdir()
        elif path.suffix == ".json":
            shutil.copy(path, target)
        else:
            target.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    first = import_all(half)
    for path in sorted(project.rglob("*.jsonl")):
        with (half / path.relative_to(project)).open("ab") as file:
            file.write(path.read_bytes()[path.stat().st_size // 2 :])
    second = import_all(half)
    assert min(new_entries(first), new_entries(second)) > 0
    grown = {
        row.key: row.conversation
        for row in TranscriptFolder.objects.get(path=str(half)).conversations.select_related("conversation")
    }
    assert set(grown) == set(whole)
    for key, row in grown.items():
        assert [(e.seq, e.kind, e.model) for e in Entry.objects.filter(conversation=row).order_by("seq")] == [
            entry[:3] for entry in whole[key].entries
        ]
        assert row.title == whole[key].title
    for wake in Wake.objects.all():  # a worker's part: an agent that ended before the one that it called (L11)
        look_again(wake.subject)
    assert {key: Conversation.objects.get(pk=row.pk).state for key, row in grown.items()} == {
        key: one.state for key, one in whole.items()
    }


def test_usage_is_kept_once_for_each_answer(project: Path) -> None:
    """A6: the largest counts of a message id."""
    import_all(project)
    used = Usage.objects.get(conversation=of(MAIN), message_id="msg_m1")
    assert (used.output_tokens, used.input_tokens, used.cache_read_tokens, used.model) == (
        90,
        3,
        4000,
        "claude-sonnet-4-6",
    )
    assert Usage.objects.filter(conversation=of(MAIN)).count() == 3


def test_the_context_of_an_imported_session_is_what_the_agent_reads(project: Path) -> None:
    """L4, L5: lines of one answer are one message, results follow in call order, the summary begins it anew."""
    import_all(project)
    messages = load_context(of(MAIN), 7).messages
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [block["type"] for block in messages[1]["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block["tool_use_id"] for block in messages[2]["content"]] == ["toolu_1", "toolu_2"]
    later = load_context(of(BOTH), of(BOTH).head).messages
    assert "Summary: a cart discount" in json.dumps(later[0])
    assert "Amount in cents" not in json.dumps(later)


def test_raw_lines_are_kept_as_they_were(project: Path) -> None:
    """R10: the bytes, also of lines that gave no entry."""
    import_all(project)
    data = (project / "syn-02-irregular.jsonl").read_bytes()
    odd = of("session:d735ee5a-c9e9-5820-ab5e-ba1e89a833e6")
    lines = set(data.split(b"\n"))
    entries = Entry.objects.filter(conversation=odd).order_by("seq")
    raws = [raw_line(conversation=odd.pk, seq=entry.seq) for entry in entries]
    assert set(raws) <= lines
    assert raws[1] == b'{"type":"user","uuid":"cut-in-the-mid'
    assert b"\\ud83d" in (raws[-1] or b"")
    assert raw_line(conversation=odd.pk, seq=1000) is None
    file = TranscriptFile.objects.get(name="syn-02-irregular.jsonl")
    assert (file.lines, file.unreadable, file.offset) == (30, 5, len(data) - len(data.split(b"\n")[-1]))
    assert file.conversation == odd


def test_u0000_and_lone_surrogates_are_stored(project: Path) -> None:
    script = Script()
    script.prompt("nul \0 and \ud83d")
    script.answer(
        {"type": "tool_use", "id": "t\ud83d1", "name": "Ba\0sh", "input": {"command": "a\0b\ud83d"}}, stop="tool_use"
    )
    (project / "odd.jsonl").write_bytes(script.data())
    import_all(project)
    first, second = Entry.objects.filter(conversation=of("session:s1")).order_by("seq")
    assert json.loads(first.model) == [{"role": "user", "content": "nul \0 and \ud83d"}]
    assert first.prompt == "nul � and �"
    assert json.loads(second.model)[0]["content"][0]["input"] == {"command": "a\0b\ud83d"}


def test_a_note_between_shifts_no_place(tmp_path: Path) -> None:
    """Somebody writes into the imported conversation; what the transcript brings later still finds its places."""
    script = Script()
    script.prompt("Add a field.")
    answer = script.answer("Percent or amount?")
    script.prompt("Percent.")
    path = tmp_path / "s1.jsonl"
    path.write_bytes(script.data())
    import_all(tmp_path)
    session = of("session:s1")
    with transaction.atomic():
        place_entries(conversation=lock_conversation(session.pk), entries=[NewEntry(kind="x.note")])
    script.system("api_error", error={"status": 529}, retryAttempt=10, maxRetries=10)
    script.prompt("Percent.", parent=answer)
    script.answer("Done.")
    script.prompt("And tests.")
    script.prompt("Amount, on second thoughts.", parent=answer)
    path.write_bytes(script.data())
    import_all(tmp_path)
    kinds = list(Entry.objects.filter(conversation=session).order_by("seq").values_list("seq", "kind"))
    assert kinds == [
        (1, "user"),
        (2, "assistant"),
        (3, "user"),
        (4, "x.note"),
        (5, "claude.error"),
        (6, "user"),
        (7, "assistant"),
        (8, "user"),
    ]
    retry = Entry.objects.get(conversation=session, seq=6)
    assert [edit.target for edit in retry.edit_rows.all()] == [3]
    branch = Conversation.objects.get(kind=Kind.BRANCH)
    assert (branch.parent, branch.at) == (session, 2)
    again = Script(start=50)
    again.prompt("Tests with pytest.", parent=script.lines[-3]["uuid"])
    with path.open("ab") as file:
        file.write(again.data())
    import_all(tmp_path)
    newest = Conversation.objects.filter(kind=Kind.BRANCH).latest("pk")
    assert (newest.parent, newest.at) == (session, 7)


def test_sessions_go_under_the_root_of_their_working_folder(project: Path, tmp_path: Path) -> None:
    """CONTRACT: one root per working folder, also one that a person made; `--root` says otherwise."""
    own = make_root(title="Mine", folder="/home/dev/shop")
    import_all(project)
    assert {row.root_id for row in Conversation.objects.all()} == {own.pk}
    script = Script("elsewhere")
    script.prompt("Go.", cwd="/srv/api")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "elsewhere.jsonl").write_bytes(script.data())
    import_all(tmp_path / "other", root=own.pk)
    assert of("session:elsewhere").root_id == own.pk


def test_a_session_without_a_folder_has_a_root_too(tmp_path: Path) -> None:
    script = Script()
    script.prompt("Go.", cwd=None)
    (tmp_path / "s1.jsonl").write_bytes(script.data())
    import_all(tmp_path)
    assert of("session:s1").root.conversation.title == "Sessions without a working folder"


def test_one_file_comes_with_its_agents(project: Path) -> None:
    import_all(project / "syn-01-tree.jsonl")
    assert set(stored()) == {MAIN, AMOUNT, BOTH, "agent:a1b2c3d", "agent:e4f5a6b"}


def test_a_rewind_to_the_start_inherits_nothing(tmp_path: Path) -> None:
    script = Script()
    script.prompt("Add a field.")
    script.answer("Done.")
    script.prompt("Write a poem.", parent=None)
    script.answer("A poem.")
    (tmp_path / "s1.jsonl").write_bytes(script.data())
    import_all(tmp_path)
    branch = Conversation.objects.get(kind=Kind.BRANCH)
    assert (branch.at, branch.path, branch.head) == (0, [], 2)
    assert load_context(branch).messages[0]["content"] == "Write a poem."


def test_what_a_compaction_keeps_is_in_the_context_after_it(tmp_path: Path) -> None:
    script = Script()
    script.prompt("One.")
    script.answer("First.")
    kept = script.prompt("Two.")
    answer = script.answer("Second.")
    script.prompt("Three.")
    boundary = {"trigger": "auto", "preservedMessages": {"anchorUuid": "x", "uuids": [kept, answer]}}
    script.system("compact_boundary", parent=None, logicalParentUuid=script.lines[-1]["uuid"], compactMetadata=boundary)
    script.line("user", message={"role": "user", "content": "Summary."}, isCompactSummary=True)
    script.prompt("Four.", parent=answer)
    (tmp_path / "s1.jsonl").write_bytes(script.data())
    import_all(tmp_path)
    session = of("session:s1")
    text = json.dumps(load_context(session, session.head).messages)
    found = [word for word in ("One", "First", "Summary", "Two", "Second", "Three", "Four") if f"{word}." in text]
    assert found == ["Summary", "Two", "Second", "Four"]
    assert text.index("Summary.") < text.index("Two.") < text.index("Four.")


def test_a_line_over_the_cap_is_said_and_passed_over(tmp_path: Path) -> None:
    """T1: refused without stopping."""
    script = Script()
    script.prompt("Before.")
    begun = script.data()
    later = Script(start=10)
    later.prompt("After.", parent=script.lines[-1]["uuid"])
    long = b'{"type":"user","message":"' + b"x" * (32 * 1024 * 1024) + b'"}\n'
    path = tmp_path / "s1.jsonl"
    path.write_bytes(begun + long + later.data())
    import_all(tmp_path)
    entries = list(Entry.objects.filter(conversation=of("session:s1")).order_by("seq"))
    assert [entry.kind for entry in entries] == ["user", "claude.unreadable", "user"]
    assert data_of(entries[1])["text"] == (
        f"A line of {len(long)} bytes at byte {len(begun)} of the file was not read: at most 33554432 bytes of a line are."
    )
    assert raw_line(conversation=of("session:s1").pk, seq=3) == later.data().rstrip(b"\n")
    file = TranscriptFile.objects.get()
    assert (file.too_long, file.lines, file.offset) == (1, 3, path.stat().st_size)
    moved = tmp_path / "copy"
    shutil.copy(path, moved)
    moved.replace(path)
    assert new_entries(import_all(tmp_path)) == 0
    assert TranscriptFile.objects.get().generation == 0


def test_files_that_are_no_transcripts_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"a":1}\n')
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "half.jsonl").write_bytes(b'{"type":"user","uu')
    assert import_all(tmp_path) == []
    assert not Conversation.objects.exists()


def test_the_samples_copied_hold_to_the_sources() -> None:
    assert sorted(path.name for path in (SAMPLES / "claude").glob("*.jsonl")) == [f"{name}.jsonl" for name in TREE]


def test_sessions_and_branches_leave_a_line_in_their_root(project: Path) -> None:
    """L1, L15: one line for each, with what it is called; an import alone keeps no root from becoming a tally."""
    import_all(project / "syn-01-tree.jsonl")
    root = Root.objects.get()
    main, amount, both = of(MAIN), of(AMOUNT), of(BOTH)
    assert list(root.lines.order_by("seq").values_list("about", "text")) == [
        (main.pk, f"#{main.pk} joined: Discount work"),
        (amount.pk, f"#{amount.pk} started from #{main.pk}/8: Amount in cents, please."),
        (both.pk, f"#{both.pk} started from #{main.pk}/8: Both, with a switch."),
    ]
    lines = Entry.objects.filter(conversation=root.conversation).order_by("seq")
    assert {(line.kind, line.model) for line in lines} == {("lineage.branched", "")}
    assert [data_of(line).get("at") for line in lines] == [0, 8, 8]


def test_rollouts_and_pi_sessions_become_trees_too(tmp_path: Path) -> None:
    day = copy_samples(
        tmp_path / "codex/sessions/2026/09/01",
        "syn-01-parent",
        "syn-02-subagent",
        "syn-03-fork-paginated",
        format="codex",
    )
    pi = copy_samples(tmp_path / "pi/--home-dev-shop--", "syn-01-tree", format="pi")
    readings = import_all(tmp_path)
    assert [reading.failed for reading in readings] == [""] * 4
    folders = dict(TranscriptFolder.objects.values_list("format", "path"))
    assert folders == {"codex": str(day.parents[3]), "pi": str(pi)}
    kinds = {(row.source, row.kind): 0 for row in Conversation.objects.exclude(kind=Kind.ROOT)}
    for row in Conversation.objects.exclude(kind=Kind.ROOT):
        kinds[row.source, row.kind] += 1
    assert kinds == {
        ("codex", "session"): 1, ("codex", "branch"): 2, ("codex", "agent"): 1, ("pi", "session"): 1, ("pi", "branch"): 2,
    }  # fmt: skip
    assert Root.objects.get().conversation.title == "shop"
    before = stored()
    assert new_entries(import_all(tmp_path)) == 0
    assert stored() == before
    side = of("branch:6b0085a3-df69-59ab-bf0d-aab193a78496/0000000b")
    text = json.dumps(load_context(side).messages)
    assert [word for word in ("Plan", "Checkout: way B", "overloaded", "sketched", "tests") if word in text] == [
        "Checkout: way B", "sketched", "tests",
    ]  # fmt: skip
    assert Usage.objects.filter(conversation__source="pi").count() == 6


def test_a_rollout_that_is_archived_is_no_second_thread(tmp_path: Path) -> None:
    day = copy_samples(tmp_path / "sessions/2026/09/01", "syn-01-parent", format="codex")
    import_all(tmp_path)
    count = Entry.objects.count()
    (tmp_path / "archived_sessions").mkdir()
    (day / "syn-01-parent.jsonl").rename(tmp_path / "archived_sessions/syn-01-parent.jsonl")
    assert new_entries(import_all(tmp_path)) == 0
    assert Entry.objects.count() == count

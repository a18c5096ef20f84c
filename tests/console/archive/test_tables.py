"""Nothing of a tree can be forgotten: every model is exported, or named with the reason why it is not (C5)."""

import re
from pathlib import Path

from django.apps import apps

from console.archive.tables import LEFT_OUT, TABLES

ROOT = Path(__file__).resolve().parents[3]


def test_every_model_is_exported_or_left_out_with_a_reason() -> None:
    exported = [table.model._meta.label for table in TABLES]
    assert len(set(exported)) == len(exported)
    assert sorted([*exported, *LEFT_OUT]) == sorted(model._meta.label for model in apps.get_models())
    assert all(LEFT_OUT.values())


def test_columns_of_json_are_there() -> None:
    assert [(t.name, name) for t in TABLES for name in t.json if name not in t.columns] == []


def test_results_that_hold_numbers_of_rows_are_known() -> None:
    """`moved_result` moves them (R4): look there before a module is added here."""
    users = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for app in ("console", "documents", "lineage")
        for path in (ROOT / app).rglob("*.py")
        if re.search(r"(?<![\w.])remember\(", path.read_text()) or "Request(receiver=" in path.read_text()
    }
    actions = "abstracts attachments branches deliveries entries landings memory notes notify pushes roots subagents submissions"
    known = {f"lineage.actions.{name}" for name in actions.split()}
    known |= {"lineage.tasks.kinds.landing_note", "lineage.tasks.kinds.prompt", "documents.actions.documents"}
    assert users - {"console.requests"} == known

"""The rules of the house, kept by tests (STYLE 27)."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver

ROOT = Path(__file__).resolve().parent.parent
APPS = ("console", "documents", "lineage")
# Pieces of console that everything stands on: they import no other app (DESIGN 3).
CORE = {"access", "answers", "clock", "data", "errors", "events", "json_text", "models", "requests", "secrets"}


def _modules(*apps: str) -> Iterator[tuple[str, Path]]:
    for app in apps:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield ".".join(path.relative_to(ROOT).with_suffix("").parts), path


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def _imports_app(path: Path, app: str) -> bool:
    return any(name == app or name.startswith(f"{app}.") for name in _imports(path))


def test_documents_never_import_lineage() -> None:
    """DESIGN 3: lineage may call documents, never the other way round."""
    assert [name for name, path in _modules("documents") if _imports_app(path, "lineage")] == []


def test_the_core_of_console_imports_no_other_app() -> None:
    """DESIGN 3."""
    wrong = [
        name
        for name, path in _modules("console")
        if name.split(".")[1] in CORE and (_imports_app(path, "lineage") or _imports_app(path, "documents"))
    ]
    assert wrong == []


def test_apps_import_only_the_core_of_console() -> None:
    """DESIGN 3: pages, sockets and commands stand above the apps."""
    wrong = [
        (name, used)
        for name, path in _modules("documents", "lineage")
        if not _is_entry_point(name)
        for used in _imports(path)
        if used.startswith("console.") and used.split(".")[1] not in CORE | {"celery", "crossing", "keeper", "actions"}
    ]
    assert wrong == []


def _is_entry_point(name: str) -> bool:
    parts = name.split(".")
    return bool({"management", "api", "admin", "urls", "views", "apps"} & set(parts)) or parts[-1].startswith("api_")


def test_one_door_to_the_fan_out() -> None:
    """R2: `publish_on_commit` is the only door; presence alone passes beside it, inside the live package."""
    words = re.compile(r"group_send|\.publish\(|get_channel_layer")
    outside = [
        name
        for name, path in _modules(*APPS)
        if not name.startswith("console.live") and name not in {"console.events"} and words.search(path.read_text())
    ]
    assert outside == []


def test_entry_points_touch_no_models() -> None:
    """R1: views, calls and consumers parse, call one action or query, and render."""
    touching = re.compile(r"\.objects\b|\.save\(|\.delete\(\)")
    wrong = [
        name
        for name, path in _modules(*APPS)
        if {"api", "views", "pages", "consumer"} & set(name.split(".")) and touching.search(path.read_text())
    ]
    assert wrong == []


def test_the_clock_is_asked_for_the_time() -> None:
    """One settable clock: nothing else asks what time it is."""
    words = re.compile(r"timezone\.now\(|datetime\.now\(|time\.time\(")
    assert [name for name, path in _modules(*APPS) if name != "console.clock" and words.search(path.read_text())] == []


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_every_setting_of_the_environment_is_in_the_readme() -> None:
    names = set()
    for _, path in _modules(*APPS):
        text = path.read_text()
        names |= set(re.findall(r"""environ(?:\.get\(|\[)\s*["']([A-Z][A-Z_]+)""", text))
        names |= set(re.findall(r"""_(?:listed|switched)\("([A-Z][A-Z_]+)""", text))
    names -= {"DJANGO_SETTINGS_MODULE", "PATH", "HOME", "TMPDIR"}
    readme = (ROOT / "README.md").read_text()
    assert sorted(name for name in names if f"`{name}`" not in readme) == []


def test_every_command_is_in_the_readme() -> None:
    commands = {path.stem for app in APPS for path in (ROOT / app / "management" / "commands").glob("[a-z]*.py")}
    readme = (ROOT / "README.md").read_text()
    assert sorted(name for name in commands if f"manage.py {name}" not in readme and f"`{name}`" not in readme) == []


def test_every_address_has_a_name() -> None:
    def nameless(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[str]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                if pattern.app_name not in {"admin"} and not (pattern.namespace or "").startswith("api"):
                    yield from nameless(pattern.url_patterns, before + str(pattern.pattern))
            elif not pattern.name:
                yield before + str(pattern.pattern)

    assert list(nameless(get_resolver().url_patterns)) == []


def test_the_repository_names_no_host_and_no_path_of_a_machine() -> None:
    """Dependencies are pinned without naming a host (DESIGN 2)."""
    words = re.compile(r"/work/|registry\.npmjs|pypi\.org|files\.pythonhosted|deb\.debian")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    wrong = [
        name
        for name in listed.stdout.splitlines()
        if name != "tests/test_house.py" and words.search((ROOT / name).read_text(errors="replace"))
    ]
    assert wrong == []


def test_modules_say_what_they_own() -> None:
    """STYLE 17: every module with code begins with a docstring."""
    silent = [
        name
        for name, path in _modules(*APPS)
        if path.stat().st_size and ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert silent == []

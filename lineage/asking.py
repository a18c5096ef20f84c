"""How background tasks ask a model, where one is configured (L18, L27). The part that runs agents registers itself here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lineage.models import Conversation


@dataclass(frozen=True, kw_only=True)
class Asker:
    """`configured` says whether a model may be asked for this conversation; `ask` takes it and a prompt and answers text. It
    raises on failure, and the task tries again."""

    configured: Callable[[Conversation], bool]
    ask: Callable[[Conversation, str], str]


_asker: Asker | None = None


def register_asker(asker: Asker) -> None:
    """Called once, by the part that talks to models."""
    global _asker
    _asker = asker


def asker_for(conversation: Conversation) -> Callable[[str], str] | None:
    """A function that asks the model of this conversation; none while no model is configured."""
    asker = _asker
    if asker is None or not asker.configured(conversation):
        return None
    return lambda prompt: asker.ask(conversation, prompt)


@contextmanager
def asking(asker: Asker | None) -> Iterator[None]:
    """For tests: another asker, or none, inside the block."""
    global _asker
    before, _asker = _asker, asker
    try:
        yield
    finally:
        _asker = before

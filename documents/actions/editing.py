"""What callers use to edit: who may, from which conversation they look, and then the one action (D9, D11)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import DatabaseError

from console.access import Permission, Who
from console.errors import DomainError
from console.requests import checked_request_id
from documents.access import Place, found_document, place_of, refusals
from documents.actions.batches import Accepted, Appended, NewBatch, append_batches, refusal_of
from documents.actions.documents import copy_document
from documents.actions.refusals import tell_refused
from documents.author_runs import advance_authors
from documents.edits import Edit, EditError
from documents.forks import Seen, seen_from, viewpoint
from documents.limits import apply_batch
from documents.models import Snapshot
from documents.texts import keep_snapshots, text_at

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A batch as somebody asked for it. `conversation` is from where it is seen, when the caller says so (D9)."""

    who: Who
    edits: Sequence[Edit]
    request_id: str | None = None
    conversation: int | None = None


def edit_document(
    *,
    who: Who,
    document: int,
    edits: Sequence[Edit],
    request_id: str | None = None,
    conversation: int | None = None,
) -> Accepted:
    """Record one batch, for callers that have no others to join it with. Raises what `append_batches` answers.

    `Accepted.document` is another one when a fork's first edit made a document of its own (D9).
    """
    asked = Asked(who=who, edits=edits, request_id=request_id, conversation=conversation)
    appended = edit_together(document=document, asked=[asked])
    for target in {snapshot.document_id for snapshot in appended.snapshots}:
        tend_document(document=target, snapshots=appended.snapshots)
    (result,) = appended.results
    if isinstance(result, DomainError):
        raise result
    return result


def edit_together(*, document: int, asked: Sequence[Asked]) -> Appended:
    """Record what waits for a document as one group, in arrival order; each is accepted or refused by itself.

    Access is asked afresh for each (S2). Batches from a fork that has a document of its own go there.
    """
    place = place_of(document)
    results: dict[int, Accepted | DomainError] = {}
    groups: dict[int, list[tuple[int, NewBatch]]] = {}
    refused_all = refusals([one.who for one in asked], place, Permission.WRITE)
    for at, (one, refused) in enumerate(zip(asked, refused_all, strict=True)):
        try:
            if refused is not None:
                raise refused
            target = _target(place, one)
            batch = NewBatch(who=one.who, edits=one.edits, request_id=checked_request_id(one.request_id))
        except DomainError as error:
            results[at] = error
        else:
            groups.setdefault(target, []).append((at, batch))
    snapshots: list[Snapshot] = []
    for target, group in groups.items():
        appended = append_batches(document=target, batches=[batch for _, batch in group])
        snapshots += appended.snapshots
        for (at, batch), result in zip(group, appended.results, strict=True):
            results[at] = result
            if isinstance(result, DomainError):
                tell_refused(target, batch, result)
    return Appended(results=[results[at] for at in range(len(asked))], snapshots=snapshots)


def tend_document(*, document: int, snapshots: Sequence[Snapshot]) -> bool:
    """After the answer: store the due snapshots, and move the authors a bounded step on; whether more steps are left.

    Never an error of the edit. What is lost here, the next opening makes up for (D7).
    """
    try:
        keep_snapshots(snapshots)
        return advance_authors(found_document(document))
    except (DatabaseError, DomainError):
        logger.exception("Snapshots of document %s were not kept; its next opening makes them.", document)
        return False


def _target(place: Place, asked: Asked) -> int:
    """The document that the batch is recorded in."""
    conversation = viewpoint(asked.who, asked.conversation)
    if place.is_shared or conversation in {None, place.conversation}:
        return place.document
    seen = seen_from(found_document(place.document), conversation)
    return seen.document.pk if seen.live else _copy_for_edit(asked, seen)


def _copy_for_edit(asked: Asked, seen: Seen) -> int:
    """The fork's own document, made only for a batch that will be recorded."""
    text = text_at(seen.document, seen.revision)
    try:
        apply_batch(text, asked.edits)
    except EditError as error:
        raise refusal_of(error, text=text, revision=seen.revision, edits=asked.edits) from error
    place = viewpoint(asked.who, asked.conversation)
    assert place is not None  # only from a conversation a document is not live
    return copy_document(who=asked.who, seen=seen, conversation=place).pk

"""Group commit in a web process (D11): what waits for a document is recorded together, by one call of the one action.

Asynchronous; owned by the event loop it runs on. Each document has its own queue and at most one group on its way, so a
busy document delays no other. Callers get their own answer, after the commit.
"""

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from console.access import Who
from console.crossing import busy, crossed
from console.errors import DomainError
from documents.actions import Accepted, Appended, Asked, edit_together, tend_document
from documents.edits import Edit
from documents.models import Snapshot

logger = logging.getLogger(__name__)

GROUP_BATCHES = 256
"""Batches of one transaction: more save nothing, and the first of them waits for the last."""

GROUP_CHARACTERS = 4 * 1024 * 1024
"""Characters of one group's strings, unless a single batch has more: about a tenth of a second under the lock."""

QUEUE_BATCHES = 4_000
"""Batches that wait for one document: a second's work; whoever comes later is told so at once."""

QUEUE_CHARACTERS = 64 * 1024 * 1024
"""Characters of all strings that wait in this process, at most 256 MiB: a process that dies of memory saves nothing."""

GATHER_S = 0.001
"""How long a group waits for as many as the last one had: they were answered together and mostly come together."""

TEND_BYTES = 64 * 1024 * 1024
"""Texts of snapshots that wait to be stored; what is dropped is made by the document's next opening (D7)."""

REST = 3
"""Authors are folded a quarter of the time at most, so that a burst of edits comes first."""


@dataclass
class _Waiting:
    asked: Asked
    weight: int
    answer: asyncio.Future[Accepted]


@dataclass
class _Queue:
    waiting: deque[_Waiting] = field(default_factory=deque)
    expected: int = 1
    full: asyncio.Future[None] | None = None  # resolved when as many wait as are expected


class Gatherer:
    """The queues of one event loop."""

    def __init__(self) -> None:
        self._queues: dict[int, _Queue] = {}
        self._weight = 0
        self._due: dict[int, list[Snapshot]] = {}
        self._due_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._tending: asyncio.Task[None] | None = None

    async def edit(
        self,
        *,
        who: Who,
        document: int,
        edits: Sequence[Edit],
        request_id: str | None = None,
        conversation: int | None = None,
    ) -> Accepted:
        """Record one batch together with what else waits; answers after the commit (D10). Raises as `edit_document` does, and
        `busy` when too much waits: then nothing was recorded."""
        queue = self._queues.get(document)
        weight = sum(len(edit.old_string) + len(edit.new_string) for edit in edits)
        if self._weight + weight > QUEUE_CHARACTERS or (queue is not None and len(queue.waiting) >= QUEUE_BATCHES):
            raise busy()
        asked = Asked(who=who, edits=edits, request_id=request_id, conversation=conversation)
        waiting = _Waiting(asked, weight, asyncio.get_running_loop().create_future())
        if queue is None:
            queue = self._queues[document] = _Queue()
            self._start(self._drain(document, queue))
        queue.waiting.append(waiting)
        self._weight += weight
        if queue.full is not None and len(queue.waiting) >= queue.expected:
            _resolve(queue.full)
        return await waiting.answer

    async def settled(self) -> None:
        """Return when nothing waits and all that is due after the answers is done."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def _drain(self, document: int, queue: _Queue) -> None:
        while queue.waiting:
            await self._gather(queue)
            group = self._take(queue)
            queue.expected = len(group)
            try:
                appended = await crossed(edit_together, document=document, asked=[one.asked for one in group])
            except Exception as error:  # whatever it is, each of them asked and none may wait for ever
                if not isinstance(error, DomainError):
                    logger.exception("A group of %s batches for document %s failed.", len(group), document)
                _refuse(group, error)
            else:
                _answer(group, appended)
                self._tend_later(appended.snapshots)
        del self._queues[document]

    async def _gather(self, queue: _Queue) -> None:
        if len(queue.waiting) >= queue.expected:
            return
        loop = asyncio.get_running_loop()
        queue.full = full = loop.create_future()
        timer = loop.call_later(GATHER_S, _resolve, full)
        await full
        timer.cancel()
        queue.full = None

    def _take(self, queue: _Queue) -> list[_Waiting]:
        group: list[_Waiting] = []
        weight = 0
        while queue.waiting and len(group) < GROUP_BATCHES:
            weight += queue.waiting[0].weight
            if group and weight > GROUP_CHARACTERS:
                break
            group.append(queue.waiting.popleft())
            self._weight -= group[-1].weight
        return group

    def _tend_later(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            size = sys.getsizeof(snapshot.text)
            if self._due_bytes + size > TEND_BYTES:
                logger.warning("Too many snapshots wait; document %s gets its own when opened.", snapshot.document_id)
                continue
            self._due_bytes += size
            self._due.setdefault(snapshot.document_id, []).append(snapshot)
        if self._due and self._tending is None:
            self._tending = self._start(self._tend())

    async def _tend(self) -> None:
        """One at a time in this process: first the texts, which openings need, then a step of the authors, then a rest."""
        loop = asyncio.get_running_loop()
        while self._due:
            document, snapshots = next(iter(self._due.items()))
            del self._due[document]
            self._due_bytes -= sum(sys.getsizeof(snapshot.text) for snapshot in snapshots)
            began = loop.time()
            if await crossed(tend_document, document=document, snapshots=snapshots):
                self._due.setdefault(document, [])
            await asyncio.sleep(REST * (loop.time() - began))
        self._tending = None

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _answer(group: Sequence[_Waiting], appended: Appended) -> None:
    for one, result in zip(group, appended.results, strict=True):
        if one.answer.done():
            continue  # whoever asked has gone
        if isinstance(result, DomainError):
            one.answer.set_exception(result)
        else:
            one.answer.set_result(result)


def _refuse(group: Sequence[_Waiting], error: Exception) -> None:
    for one in group:
        if not one.answer.done():
            one.answer.set_exception(error)


_gatherers: WeakKeyDictionary[asyncio.AbstractEventLoop, Gatherer] = WeakKeyDictionary()


def gatherer() -> Gatherer:
    """The one of the running event loop: a web process has one loop."""
    return _gatherers.setdefault(asyncio.get_running_loop(), Gatherer())

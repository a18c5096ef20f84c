"""The end of a conversation as a request reads it: page after page, the newest first, only as far back as the cap can hold (A1)."""

from collections.abc import Iterator

from lineage.agent.messages import Message, as_blocks
from lineage.agent.request import REQUEST_CAP, Tail
from lineage.context import Parts, derive_parts
from lineage.loading import TailLines, context_start, load_head, load_tail, visible_ranges
from lineage.models import Conversation

SIZE = REQUEST_CAP * 5 // 4
"""Bytes of the first page as stored: what fills a request, with what frames it. Each next page has twice as many."""

LINES = 1_000
"""Lines of the first page, at most: short ones weigh more in a request than their bytes say."""


def tails_of(conversation: Conversation, at: int | None = None) -> Iterator[Tail]:
    """Tails of the context at `at` (default: the newest entry), each reaching further back; the last one is whole."""
    ranges = visible_ranges(conversation, at)
    begin = context_start(conversation, at)
    first = 1 if begin is None else begin[2]
    head = None if begin is None else load_head(ranges, begin[0], begin[1])
    start = first + 1 if head is not None and head.seq == first else first
    limit, size = LINES, SIZE
    while True:
        tail = load_tail(ranges, first, limit=limit, size=size) if ranges else TailLines(lines=[], edits={}, whole=True)
        whole = tail.whole or tail.lines[0].seq <= start
        before, after = derive_parts(head=head, lines=tail.lines, edits=tail.edits)
        yield Tail(
            head=_messages(before),
            messages=_messages(after),
            start=start,
            first=start if whole else tail.lines[0].seq,
        )
        if whole:
            return
        limit, size = 2 * limit, 2 * size


def _messages(parts: Parts) -> list[Message]:
    return [
        Message(role=message["role"], content=blocks, seq=seq)
        for seq, message in parts
        if (blocks := as_blocks(message["content"]))
    ]

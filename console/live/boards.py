"""The streams `team` and `root:ID`: rows of the board, replaced whole, by version (R9; CONTRACT, WebSocket)."""

from collections.abc import Sequence

from console.access import Who
from console.board.queries import (
    board_page,
    board_version,
    feed,
    needs_you,
    root_row,
    root_rows,
    root_versions,
    rows_after,
    tree_size,
)
from console.board.shapes import root_json
from console.errors import Forbidden
from console.events import Rows, raw
from console.live.logs import CATCH_UP, Head, Log, Opening, Place, RowsLog
from console.live.rights import visible
from lineage.access import root_for


class TeamSource:
    """The dashboard: rows of the roots that one may see, never another's."""

    is_shared = False

    def log(self, stream: str) -> Log:
        return RowsLog(stream)

    def place(self, who: Who, number: int) -> Place:
        if who.token is not None:
            raise Forbidden("A token belongs to one root, so it cannot watch the team's board. Subscribe to root:ID.")
        return Place(root=0, head=Head(seq=board_version()), sees=visible(who))

    def open(self, who: Who | None, number: int, after: int | None) -> Opening:
        head = Head(seq=board_version())
        if after is not None and 0 <= after <= head.seq:
            rows = rows_after(who, after, limit=CATCH_UP + 1)
            if len(rows) <= CATCH_UP:
                version = max([head.seq, *(row.version for row in rows)])
                event = Rows(version=version, rows=tuple((row.root, raw(root_json(row))) for row in rows))
                return Opening(head=Head(seq=version), events=(event,))
        page = board_page(who)
        needs, needing = needs_you(who)
        state = {**page.as_json(), "needs": [need.as_json() for need in needs], "needing": needing, "feed": feed(who)}
        return Opening(head=Head(seq=page.version), snapshot=raw(state))

    def heads(self, numbers: Sequence[int]) -> dict[int, Head]:
        return {0: Head(seq=board_version())}


class RootSource:
    """A root's page: its own row and the outline of its conversations."""

    is_shared = True

    def log(self, stream: str) -> Log:
        return RowsLog(stream)

    def place(self, who: Who, number: int) -> Place:
        root_for(who, number)
        return Place(root=number, head=Head(seq=root_versions([number]).get(number, 0)))

    def open(self, who: Who | None, number: int, after: int | None) -> Opening:
        own = root_row(number)
        head = Head(seq=own.version if own is not None else 0)
        if own is not None and after is not None and 0 <= after <= head.seq:
            rows = root_rows(number, after=after, limit=CATCH_UP + 1)
            if len(rows) <= CATCH_UP:
                shapes = [*rows, root_json(own)] if own.version > after else rows
                version = max([head.seq, *(row["version"] for row in rows)])
                event = Rows(version=version, rows=tuple((number, raw(shape)) for shape in shapes))
                return Opening(head=Head(seq=version), events=(event,))
        shown = root_rows(number)
        state = {"root": root_json(own) if own is not None else None, "rows": shown, "total": tree_size(number)}
        return Opening(head=head, snapshot=raw(state))

    def heads(self, numbers: Sequence[int]) -> dict[int, Head]:
        return {root: Head(seq=version) for root, version in root_versions(numbers).items()}

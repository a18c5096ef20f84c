"""The dashboard of many roots and conversations (DESIGN 11: 1,000 and 100,000 in 100 ms), and what a change costs.

uv run python -m tests.bench.board --roots 1000 --conversations 100000
"""

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.bench.place import own_console


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--roots", type=int, default=1000)
    parser.add_argument("--conversations", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=15)
    options = parser.parse_args()
    with own_console():
        measure(options.roots, options.conversations, options.times)


def measure(roots: int, conversations: int, times: int) -> None:
    from django.db import connection

    from console.actions.people import make_user
    from console.board.keeping import fold_touched, refresh_for_time
    from console.board.queries import board_page, feed, needs_you, root_row, root_rows, rows_after, tree_size
    from console.board.shapes import root_json
    from console.clock import moved
    from console.events import encode_json
    from console.models import Membership

    fill(roots, conversations)
    began = time.perf_counter()
    while fold_touched():
        pass
    print(f"{'first fold of everything':44} {time.perf_counter() - began:8.2f} s")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # as autovacuum does within a minute

    from console.access import who_is_user

    admin = who_is_user(make_user(username="admin", superuser=True))
    member = who_is_user(make_user(username="member"))
    from lineage.models import Root

    moment = Root.objects.select_related("conversation").first()
    assert moment is not None
    half = Root.objects.order_by("pk").values_list("pk", flat=True)[: roots // 2]
    Membership.objects.bulk_create(
        Membership(root_id=root, actor_id=member.actor, role="viewer", created=moment.conversation.created)
        for root in half
    )

    def dashboard(who: Any) -> bytes:
        page, (needs, needing) = board_page(who), needs_you(who)
        return encode_json(
            {**page.as_json(), "needs": [need.as_json() for need in needs], "needing": needing, "feed": feed(who)}
        )

    def everything(who: Any) -> bytes:
        return encode_json([root_json(row) for row in rows_after(who, 0, limit=roots)])

    largest = moment.pk
    told("dashboard, first page, of all roots", times, lambda: dashboard(admin))
    told(f"dashboard, first page, member of {roots // 2}", times, lambda: dashboard(member))
    told(f"all {roots} rows (catch-up from nothing)", times, lambda: everything(admin))
    told(
        f"a root's page of {tree_size(largest)} conversations",
        times,
        lambda: encode_json([root_rows(largest), root_json(found) if (found := root_row(largest)) else None]),
    )

    def change() -> None:
        touch_one(largest)
        fold_touched()

    told("one change: entry to committed rows", times, change)
    with moved(timedelta(hours=1)):
        began = time.perf_counter()
        changed = refresh_for_time()
        print(f"{f'an hour passes: {changed} rows':44} {(time.perf_counter() - began) * 1000:8.1f} ms")


def told(what: str, times: int, work: Callable[[], Any]) -> None:
    work()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    print(f"{what:44} {statistics.median(taken):8.1f} ms median, {max(taken):8.1f} ms worst of {times}")


def touch_one(root: int) -> None:
    from django.db import transaction

    from lineage.actions.entries import NewEntry, lock_conversation, place_entries

    with transaction.atomic():
        place_entries(
            conversation=lock_conversation(root),
            entries=[NewEntry(kind="lineage.note", data={"text": "No deploys on Thursday afternoon."})],
        )


def fill(roots: int, conversations: int) -> None:
    """Rows as the product makes them, many at once: sessions with an entry, of which some wait for a person."""
    from console.clock import now
    from console.models import Touched
    from lineage.actions.roots import create_root
    from lineage.models import Conversation, Entry, Kind, State

    moment = now()
    states = [State.IDLE] * 40 + [State.RUNNING] * 5 + [State.CHILD] * 3 + [State.APPROVAL, State.FAILED]
    each = max(1, conversations // roots - 1)
    for number in range(roots):
        root = create_root(who=None, title=f"Root number {number}")
        made = Conversation.objects.bulk_create(
            Conversation(
                kind=Kind.SESSION,
                root=root,
                title=f"Session {serial} of root {number}",
                head=1,
                state=states[(serial * 7 + number) % len(states)],
                state_why="asks to run alembic upgrade head",
                state_since=moment - timedelta(seconds=serial),
                created=moment,
                touched=moment - timedelta(seconds=serial),
            )
            for serial in range(each)
        )
        Entry.objects.bulk_create(
            Entry(
                conversation=session,
                seq=1,
                kind="user",
                time=moment - timedelta(minutes=serial % 1440),
                model='[{"role":"user","content":"Retry declined payments with backoff and jitter."}]',
                prompt="Retry declined payments with backoff and jitter.",
            )
            for serial, session in enumerate(made)
        )
        Touched.objects.bulk_create(Touched(conversation=session.pk) for session in made)


if __name__ == "__main__":
    main()

"""Numbers for restored rows: a table's are moved together by one distance, so that their order and every reference stand."""

from django.db import OperationalError, connection, models, transaction

from console.errors import DomainError

WAIT_MS = 5000  # for whoever is just writing many rows of that table


def reserve_numbers(model: type[models.Model], first: int, last: int, *, kept: bool) -> int:
    """The distance by which numbers `first` to `last` are to be moved so that nobody has or will get them: 0 where they are
    free as they are, and always where they are `kept`. What is made afterwards is numbered above them, in either form: keys that
    name an old number never meet a new row. In a transaction of its own, since it holds up whoever makes such rows."""
    assert model._meta.pk is not None
    try:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{WAIT_MS}ms"])
            cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [model._meta.db_table, model._meta.pk.column])
            (sequence,) = cursor.fetchone() or ("",)
            cursor.execute(f"ALTER SEQUENCE {sequence} CACHE 1")  # changes nothing, and nobody draws until the commit
            cursor.execute(f"SELECT last_value, is_called FROM {sequence}")  # noqa: S608 - the database's own name
            value, is_called = cursor.fetchone() or (0, False)
            used = value if is_called else value - 1
            distance = 0 if kept else max(0, used + 1 - first)
            if last + distance > used:
                cursor.execute(f"ALTER SEQUENCE {sequence} RESTART WITH {int(last + distance + 1)}")
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != "55P03":  # lock_not_available
            raise
        raise DomainError(
            "busy", "Something long is being written just now. Nothing was restored; try again.", status=503
        ) from error
    return distance

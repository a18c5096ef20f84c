"""The memory of the readers of Codex and pi: tables of plain values, as a fold over small records. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec


class Tables:
    """Named tables. `put` sets a value, none takes it out; `extend` adds to a row of bytes. Both are noted for `recall`."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, Any]] = defaultdict(dict)
        self._rows: dict[str, bytearray] = defaultdict(bytearray)
        self._log: list[tuple[Any, ...]] = []

    def get(self, table: str, key: str) -> Any:
        return self._values[table].get(key)

    def put(self, table: str, key: str, value: Any) -> None:
        self._set(table, key, value)
        self._log.append((table, key, value))

    def keys(self, table: str) -> list[str]:
        return list(self._values[table])

    def row(self, key: str) -> bytearray:
        return self._rows[key]

    def extend(self, key: str, more: bytes) -> None:
        if more:
            self._rows[key] += more
            self._log.append((key, more))

    def taken(self) -> bytes:
        """The records since the last call, as bytes for `recall`."""
        log, self._log = self._log, []
        return msgspec.msgpack.encode(log)

    def recall(self, pieces: Iterable[bytes]) -> None:
        """Fold records of an earlier reading, oldest first."""
        for piece in pieces:
            for record in msgspec.msgpack.decode(piece):
                if len(record) == 3:
                    self._set(*record)
                else:
                    self._rows[record[0]] += record[1]

    def _set(self, table: str, key: str, value: Any) -> None:
        if value is None:
            self._values[table].pop(key, None)
        else:
            self._values[table][key] = value

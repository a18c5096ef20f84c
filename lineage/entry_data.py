"""What people see of an entry: at most 16 KiB; what is cut is said, and kept whole beside it (L2)."""

from typing import Any

from console.json_text import dumped
from lineage.models.entries import DATA_BYTES

_STEPS = (8192, 4096, 2048, 1024, 512, 256, 128, 64)  # longest string or list kept, until all fits


def shown_data(data: dict[str, Any]) -> tuple[str, str | None]:
    """(JSON to show, whole JSON when the shown one was cut, else none).

    Cut data has a key `cut`: {"bytes": size of the whole as JSON, "longest": characters kept of the longest string}.
    """
    whole = dumped(data)
    size = len(whole.encode())
    if size <= DATA_BYTES:
        return whole, None
    for step in _STEPS:
        shown = _shortened(data, step)
        shown["cut"] = {"bytes": size, "longest": step}
        text = dumped(shown)
        if len(text.encode()) <= DATA_BYTES:
            return text, whole
    return dumped({"cut": {"bytes": size, "longest": 0}}), whole


def _shortened(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= limit else value[:limit] + "…"
    if isinstance(value, list):
        return [_shortened(item, limit) for item in value[:limit]]
    if isinstance(value, dict):
        return {key: _shortened(item, limit) for key, item in list(value.items())[:limit]}
    return value

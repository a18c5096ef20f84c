"""The server's names of attachments: 32 hex digits and an extension, never a path (D18, D21)."""

import re
import secrets
from pathlib import PurePath

_NAME = re.compile(r"[0-9a-f]{32}\.[a-z0-9]{1,12}")


def new_name(filename: str) -> str:
    """A name for an uploaded file; of the user's own name only a plain extension is kept."""
    extension = PurePath(filename).suffix.lower().lstrip(".")
    if not re.fullmatch(r"[a-z0-9]{1,12}", extension):
        extension = "bin"
    return f"{secrets.token_hex(16)}.{extension}"


def is_issued(name: str) -> bool:
    """Whether the name has the form of ours: so it can hold neither a separator nor a dot-dot."""
    return _NAME.fullmatch(name) is not None

"""The child process: limits first, then the format's reader. `python -m documents.attachments.extraction.child FILE NAME OUT`.

Writes the text to OUT and one JSON line to standard output: `{status, chars, truncated, reason, media_type}`.
"""

import json
import resource
import sys
from pathlib import Path

from documents.attachments.extraction.formats import Unreadable, pieces_of
from documents.attachments.extraction.kinds import media_type
from documents.attachments.limits import CHILD_CPU_SECONDS, CHILD_MEMORY, EXTRACTION_CHARS
from documents.attachments.sidecar import EXTRACTED, UNREADABLE


def extract(source: Path, filename: str, out: Path, limit: int = EXTRACTION_CHARS) -> dict[str, object]:
    """Write the text of `source` to `out`, at most `limit` code points, and answer its facts."""
    kind = media_type(source, filename)
    chars, truncated = 0, False
    try:
        if source.stat().st_size == 0:
            raise Unreadable("an empty file")
        with out.open("w", encoding="utf-8", newline="") as file:
            for piece in pieces_of(source, kind):
                text = piece.replace("\0", "�").encode("utf-8", "surrogatepass").decode("utf-8", "replace")
                truncated = len(text) > limit - chars
                text = text[: limit - chars]
                file.write(text)
                chars += len(text)
                if truncated:
                    break
    except Unreadable as error:
        return _facts(UNREADABLE, kind, reason=str(error))
    except MemoryError:
        return _facts(UNREADABLE, kind, reason="it needs more memory than an extraction may take")
    except Exception as error:  # a library met a file that it cannot read: a status, not a crash (D22)
        return _facts(UNREADABLE, kind, reason=f"its reader failed ({type(error).__name__})")
    return _facts(EXTRACTED, kind, chars=chars, truncated=truncated)


def _facts(
    status: str, kind: str, *, chars: int = 0, truncated: bool = False, reason: str | None = None
) -> dict[str, object]:
    return {"status": status, "chars": chars, "truncated": truncated, "reason": reason, "media_type": kind}


def _limit_self() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (CHILD_MEMORY, CHILD_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CHILD_CPU_SECONDS, CHILD_CPU_SECONDS + 5))
    most = EXTRACTION_CHARS * 4 + 1024
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _limit_self()
    print(json.dumps(extract(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))))

"""The entry of a line that is no JSON object, or too long: what is missing is said where it is missing. Pure."""

from datetime import datetime

from lineage.transcripts.lines import LINE_BYTES, Fault, Line
from lineage.transcripts.plan import PlannedEntry, Source

_SENTENCES = {
    Fault.MALFORMED: "is not JSON",
    Fault.NOT_AN_OBJECT: "is not a JSON object",
    Fault.TOO_LONG: f"was not read: at most {LINE_BYTES} bytes of a line are",
}


def fault_entry(prefix: str, line: Line, time: datetime | None, name: str) -> PlannedEntry:
    """`{fault, bytes, text}` under the format's own prefix."""
    fault = line.fault or Fault.MALFORMED
    text = f"A line of {line.size} bytes at byte {line.offset} of the file {_SENTENCES[fault]}."
    return PlannedEntry(
        kind=f"{prefix}.unreadable",
        source=Source(line.offset, line.size),
        data={"fault": str(fault), "bytes": line.size, "text": text},
        time=time,
        uuid=name,
    )

"""The rows of the lineage app."""

from lineage.models.agents import Approval, ApprovalStatus, Draft, ModelRequest, Rule
from lineage.models.conversations import Conversation, Kind, Root, State, TitleSource
from lineage.models.entries import Entry, EntryEdit, EntryRest, Outcome, Usage
from lineage.models.memory import LoadReceipt, Memory, MemoryChange, MemoryKind, MemoryProposal, ProposalStatus
from lineage.models.submissions import (
    Delivered,
    Note,
    NoteSource,
    Submission,
    SubmissionStatus,
    SubmissionType,
    WhenBusy,
)
from lineage.models.tally import Landing, OpenAbstract, TallyKind, TallyLine, TallySeen
from lineage.models.tasks import LIVE, Task, TaskOutcome, TaskStatus, Wake
from lineage.models.transcripts import (
    TranscriptConversation,
    TranscriptFile,
    TranscriptFolder,
    TranscriptFormat,
    TranscriptPiece,
    TranscriptSpan,
)

__all__ = [
    "LIVE",
    "Approval",
    "ApprovalStatus",
    "Conversation",
    "Delivered",
    "Draft",
    "Entry",
    "EntryEdit",
    "EntryRest",
    "Kind",
    "Landing",
    "LoadReceipt",
    "Memory",
    "MemoryChange",
    "MemoryKind",
    "MemoryProposal",
    "ModelRequest",
    "Note",
    "NoteSource",
    "OpenAbstract",
    "Outcome",
    "ProposalStatus",
    "Root",
    "Rule",
    "State",
    "Submission",
    "SubmissionStatus",
    "SubmissionType",
    "TallyKind",
    "TallyLine",
    "TallySeen",
    "Task",
    "TaskOutcome",
    "TaskStatus",
    "TitleSource",
    "TranscriptConversation",
    "TranscriptFile",
    "TranscriptFolder",
    "TranscriptFormat",
    "TranscriptPiece",
    "TranscriptSpan",
    "Usage",
    "Wake",
    "WhenBusy",
]

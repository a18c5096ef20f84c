"""The lineage section of the system prompt (L30): where a conversation comes from, and what its context begins with."""

from lineage.models import Conversation, Entry, Kind

_REST = (
    "The root keeps one intent line per branch, the latest abstract of each, and every landing. "
    "Leave a note for any conversation that your work affects."
)


def lineage_section(conversation: Conversation) -> str:
    """The section; "" for roots and subagents. A session gets the root line only."""
    if conversation.kind in (Kind.ROOT, Kind.AGENT):
        return ""
    root = f"Your root is #{conversation.root_id}. {_REST}"
    if conversation.kind == Kind.SESSION:
        return root
    intent = conversation.intent or conversation.title
    return "\n".join(
        [
            f"You branched from #{conversation.parent_id} at #{conversation.parent_id}/{conversation.at} for: {intent}",
            root,
            _beginning(conversation),
        ]
    )


def _beginning(conversation: Conversation) -> str:
    if began_with_brief(conversation):
        return (
            f"Your context begins with a brief: the memory index of #{conversation.root_id} and its newest landings. "
            "Read a memory whole with the tool memory; the whole tally stands in the root."
        )
    return (
        f"Your context begins with the tally of #{conversation.root_id}, or with what the conversation you came from had read "
        "of it. #12/345 names entry 345 of conversation 12."
    )


def began_with_brief(conversation: Conversation) -> bool:
    """Whether a brief stands where its own entries begin, or where those of the branch it was forked from do (L17)."""
    starts = [
        (int(source), start + 1) for (source, _), start in zip(conversation.path, _starts(conversation), strict=True)
    ]
    starts.append((conversation.pk, conversation.at + 1))
    return any(
        Entry.objects.filter(conversation=source, seq=seq, kind="reset").exclude(model="").exists()
        for source, seq in starts
    )


def _starts(conversation: Conversation) -> list[int]:
    return [0, *(int(upto) for _, upto in conversation.path)][: len(conversation.path)]

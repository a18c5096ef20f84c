"""The console's own tools (A4), for agents inside and, where they are listed so, for agents outside over MCP."""

from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins

from console.errors import DomainError, Invalid
from documents.access import document_for
from documents.actions.editing import edit_document
from documents.attachments.access import read_attachment
from documents.attachments.limits import LONGEST_PAGE, PAGE_CHARS
from documents.attachments.queries import attachment_json, attachments_of
from documents.attachments.reading import TOOL as ATTACHMENT_READ
from documents.attachments.reading import effective_limit, whole_number
from documents.edits import Edit
from documents.forks import documents_seen, seen_from
from documents.texts import text_at
from lineage.access import conversation_for, root_for, visible_roots
from lineage.actions.abstracts import write_abstract
from lineage.actions.attachments import record_reading
from lineage.actions.branches import start_branch
from lineage.actions.memory import apply_memory_ops
from lineage.actions.notes import leave_note
from lineage.actions.notify import request_notify
from lineage.actions.subagents import start_subagent
from lineage.agent.failures import ToolFailed
from lineage.agent.messages import RESULT_CHARACTERS
from lineage.agent.tools.definitions import Caller, Said, Tool
from lineage.loading import visible_ranges
from lineage.memories import memories_json, memory_json

SHOWN_CHARACTERS = RESULT_CHARACTERS - 500
"""Characters of a page in a result, which carries no more: the sentence with the cursor stands behind them."""

Number = Annotated[int, Meta(description="Its number, without #.")]
Title = Annotated[str | None, Meta(description="At most 60 characters; left out: the beginning of the prompt.")]


class Note(Struct, forbid_unknown_fields=True):
    to: Annotated[int | str, Meta(description='Number of the conversation, without #, or "root" for your own root.')]
    text: Annotated[str, Meta(description="What it should know. It reads this before its next request.")]


class Notify(Struct, forbid_unknown_fields=True):
    id: Annotated[int, Meta(description="Number of the conversation whose end you want to be told, without #.")]
    wake: Annotated[bool, Meta(description="Whether its end starts your next run; else you find it as a note.")] = True


class ReadMemory(Struct, forbid_unknown_fields=True):
    read: Annotated[str | None, Meta(description="Slug of one memory to read whole; left out: the index of all.")] = (
        None
    )
    root: Annotated[int | None, Meta(description="Number of the root; left out: your own.")] = None


class Remember(Struct, forbid_unknown_fields=True):
    ops: Annotated[
        list[dict[str, Any]],
        Meta(
            description=(
                'One atomic batch, in order: {"op": "add", "slug", "kind": decision, fact or lesson, "line", "body", "source"?}, '
                '{"op": "update", "slug", ...}, {"op": "delete", "slug"}. Slugs are kebab-case, at most 48 characters; line at '
                "most 160, body at most 4,000; source names an entry such as #12/345."
            )
        ),
    ]
    root: Annotated[int | None, Meta(description="Number of the root; left out: your own.")] = None


class Branch(Struct, forbid_unknown_fields=True):
    prompt: Annotated[str, Meta(description="What the branch is to do: its first input.")]
    title: Title = None
    at: Annotated[int | None, Meta(description="Entry to fork at; left out: the latest.")] = None


class Spawn(Struct, forbid_unknown_fields=True):
    prompt: Annotated[str, Meta(description="The whole task: the subagent sees nothing else of this conversation.")]
    title: Title = None
    tools: Annotated[list[str], Meta(description="The only tools it may use; left out: all.")] = []


class Abstract(Struct, forbid_unknown_fields=True):
    text: Annotated[
        str, Meta(description="Where this work stands: the whole state in one paragraph, replacing the last.")
    ]
    at: Annotated[int | None, Meta(description="The entry that it tells of; left out: the latest.")] = None
    title: Annotated[str | None, Meta(description="What this conversation is called from now on.")] = None
    feature: Annotated[str | None, Meta(description="The part of the product that it is about.")] = None


class Nothing(Struct, forbid_unknown_fields=True):
    pass


class ReadDocument(Struct, forbid_unknown_fields=True):
    document: Number
    revision: Annotated[int | None, Meta(description="An earlier revision; left out: the newest.")] = None
    offset: Annotated[int | float | str, Meta(description="First character, from 0.")] = 0
    limit: Annotated[
        int | float | str | None, Meta(description=f"Characters: {PAGE_CHARS} when left out, {LONGEST_PAGE} at most.")
    ] = None


class OneEdit(Struct, forbid_unknown_fields=True):
    old_string: Annotated[str, Meta(description="Text that occurs exactly once in the document.")]
    new_string: Annotated[str, Meta(description="What takes its place.")]


class EditDocument(Struct, forbid_unknown_fields=True):
    document: Number
    edits: Annotated[list[OneEdit], Meta(description="Applied in order, all or none.")]


class ReadAttachment(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(description="The attachment's issued name, as its list line has it.")]
    offset: Annotated[int | float | str, Meta(description="First character, from 0.")] = 0
    limit: Annotated[
        int | float | str | None, Meta(description=f"Characters: {PAGE_CHARS} when left out, {LONGEST_PAGE} at most.")
    ] = None


def _note(caller: Caller, given: Note) -> Said:
    to = given.to if given.to == "root" else _number("to", given.to)
    receipt = leave_note(
        who=caller.who, to=to, text=given.text, sender=caller.conversation, request_id=caller.request_id
    )
    text = f"Your note to #{receipt['to']} is {receipt['status']}. It was not woken."
    return Said(text=text, line=f"to #{receipt['to']}", data=receipt)


def _notify(caller: Caller, given: Notify) -> Said:
    asked = request_notify(
        who=caller.who, caller=caller.conversation, target=given.id, wake=given.wake, request_id=caller.request_id
    )
    how = "a new run of yours begins with it" if given.wake else "you find it as a note"
    return Said(text=f"Once #{given.id} has ended, {how}. Do not wait for it here.", line=f"#{given.id}", data=asked)


def _memory(caller: Caller, given: ReadMemory) -> Said:
    root = root_for(caller.who, _root_meant(caller, given.root))
    if given.read:
        found = memory_json(root, given.read.strip())
        source = f"\nSource: {found['source']}" if found.get("source") else ""
        text = f"{found['slug']} ({found['kind']}): {found['line']}\n\n{found['body']}{source}"
        return Said(text=text, line=found["slug"], data=found)
    index = memories_json(root)
    lines = [f"- {memory['slug']} ({memory['kind']}): {memory['line']}" for memory in index]
    text = "\n".join(lines) or f"#{root.pk} remembers nothing yet."
    return Said(text=text, line=f"{len(index)} memories", data={"root": root.pk, "memories": index})


def _remember(caller: Caller, given: Remember) -> Said:
    root = _root_meant(caller, given.root)
    result = apply_memory_ops(who=caller.who, root=root, ops=given.ops, request_id=caller.request_id)
    return Said(
        text=f"Remembered in #{root}: {len(given.ops)} changes. It now has {result['memories']} memories.",
        line=f"{len(given.ops)} changes",
        data=result,
    )


def _branch(caller: Caller, given: Branch) -> Said:
    number = start_branch(
        who=caller.who,
        source=caller.conversation,
        prompt=given.prompt,
        title=given.title,
        at=given.at,
        by=caller.conversation,
        request_id=caller.request_id,
    )
    text = f"#{number} has started and works on its own. Ask with notify to be told when it ends."
    return Said(text=text, line=f"#{number}", facts={"conversation": number}, data={"id": number})


def _spawn(caller: Caller, given: Spawn) -> Said:
    number = start_subagent(
        who=caller.who,
        owner=caller.conversation,
        at=caller.at,
        call=caller.call,
        prompt=given.prompt,
        title=given.title,
        tools=given.tools,
        request_id=caller.request_id,
    )
    return Said(text="", waits_for=number)


def _abstract(caller: Caller, given: Abstract) -> Said:
    result = write_abstract(
        who=caller.who,
        conversation=caller.conversation,
        text=given.text,
        at=given.at,
        title=given.title,
        feature=given.feature,
        request_id=caller.request_id,
    )
    if result.get("entry") is None:
        return Said(text="Nothing was written: this conversation has no abstract in a root.", line="none", data=result)
    return Said(text=f"The abstract stands in #{caller.root}.", line=f"in #{caller.root}", data=result)


def _list_documents(caller: Caller, given: Nothing) -> Said:
    row = conversation_for(caller.who, caller.conversation)
    items = [
        {"id": seen.document.pk, "title": seen.document.title, "revision": seen.revision, "live": seen.live}
        for seen in documents_seen(row.pk, row.root_id)
    ]
    lines = [f"{item['id']}: {item['title']} (revision {item['revision']})" for item in items]
    text = "\n".join(lines) or "There are no documents here yet."
    return Said(text=text, line=f"{len(items)} documents", data={"documents": items})


def _read_document(caller: Caller, given: ReadDocument) -> Said:
    offset, limit = whole_number("offset", given.offset), effective_limit(given.limit)
    if offset < 0:
        raise Invalid(
            "offset", f"offset is {offset}; it counts characters from 0.", code="negative_offset", offset=offset
        )
    seen = seen_from(document_for(caller.who, given.document), caller.conversation)
    revision = seen.revision if given.revision is None else given.revision
    if not 0 <= revision <= seen.revision:
        raise Invalid(
            "revision", f"Document {given.document} has the revisions 0 to {seen.revision}.", last=seen.revision
        )
    text = text_at(seen.document, revision)
    if offset > len(text):
        raise Invalid(
            "offset",
            f"offset {offset} lies past the end: the document has {len(text)} characters.",
            code="offset_past_end",
            offset=offset,
            total_chars=len(text),
        )
    part = text[offset : offset + limit]
    after = offset + len(part)
    page = {
        "id": given.document,
        "title": seen.document.title,
        "revision": revision,
        "offset": offset,
        "limit": limit,
        "total_chars": len(text),
        "truncated": after < len(text),
        **({"next_offset": after} if after < len(text) else {}),
        "text": part,
    }
    what = f"{seen.document.title}, revision {revision}"
    return Said(text=_shown(part, what, offset, len(text)), line=what, data=page)


def _edit_document(caller: Caller, given: EditDocument) -> Said:
    accepted = edit_document(
        who=caller.who,
        document=given.document,
        edits=[Edit(edit.old_string, edit.new_string) for edit in given.edits],
        request_id=caller.request_id,
        conversation=caller.conversation,
    )
    text = f"Recorded as revision {accepted.revision} of document {accepted.document}."
    return Said(
        text=text,
        line=f"revision {accepted.revision}",
        facts={"document": accepted.document, "revision": accepted.revision},
        data={"document": accepted.document, "revision": accepted.revision},
    )


def _list_attachments(caller: Caller, given: Nothing) -> Said:
    row = conversation_for(caller.who, caller.conversation)
    items = [attachment_json(found) for found in attachments_of(row.pk, visible_ranges(row))]
    lines = [
        f"{item['name']} ({item['filename']}, {item['media_type']}): "
        + (
            f"{item['chars']} characters"
            if item["status"] == "extracted"
            else f"{item['status']} {item['reason'] or ''}".rstrip()
        )
        for item in items
    ]
    text = "\n".join(lines) or "There are no attachments here."
    return Said(text=text, line=f"{len(items)} attachments", data={"attachments": items})


def _read_attachment(caller: Caller, given: ReadAttachment) -> Said:
    page = read_attachment(who=caller.who, name=given.name, offset=given.offset, limit=given.limit)
    after = page.offset + len(page.text)
    record_reading(who=caller.who, name=page.name, upto=page.offset + len(page.text[:SHOWN_CHARACTERS]))
    cut = " The file holds more than was extracted." if page.extract_truncated else ""
    text = _shown(page.text, page.name, page.offset, page.total_chars) + cut
    return Said(text=text, line=f"{page.offset}–{after} of {page.total_chars}", data=to_builtins(page))


def _shown(part: str, what: str, offset: int, total: int) -> str:
    """A page as a model reads it: as much as a result can carry, and the cursor that goes on exactly there."""
    part = part[:SHOWN_CHARACTERS]
    after = offset + len(part)
    more = f" Read on with offset={after}." if after < total else ""
    return f"{part}\n\n({what}: characters {offset} to {after} of {total}.{more})"


def _root_meant(caller: Caller, asked: int | None) -> int:
    """The one asked for, else the own tree's, else the only one there is."""
    if asked is not None:
        return asked
    if caller.root:
        return caller.root
    roots = list(visible_roots(caller.who).values_list("pk", flat=True)[:2])
    if len(roots) != 1:
        raise DomainError("which_root", "There are several roots here. Say which one with root.")
    return int(roots[0])


def _number(field: str, value: Any) -> int:
    text = str(value).strip().removeprefix("#")
    if not text.isdecimal() or len(text) > 18:
        raise ToolFailed(f"{field} is the number of a conversation, such as 12, or root. This is {text[:40]}.")
    return int(text)


NOTE = Tool(
    name="note",
    description="Leaves a note in another conversation without waking it; its reader learns who wrote it.",
    arguments=Note,
    run=_note,
    replay_safe=True,
)
NOTIFY = Tool(
    name="notify",
    description="Has you told once another conversation has come to its end, with its answer.",
    arguments=Notify,
    run=_notify,
    replay_safe=True,
)
MEMORY = Tool(
    name="memory",
    description="Shows what the project remembers: the index, or one memory whole.",
    arguments=ReadMemory,
    run=_memory,
    replay_safe=True,
    reads_only=True,
)
REMEMBER = Tool(
    name="remember",
    description="Changes what the project remembers. Only the root's main agent may; others leave it a note.",
    arguments=Remember,
    run=_remember,
    replay_safe=False,
)
BRANCH = Tool(
    name="branch",
    description="Starts a branch of this conversation that works on its own, beside you, and knows what you know.",
    arguments=Branch,
    run=_branch,
    replay_safe=True,
)
SPAWN = Tool(
    name="spawn",
    description="Gives a task to a subagent of yours and waits for its answer. It starts with your prompt alone.",
    arguments=Spawn,
    run=_spawn,
    replay_safe=True,
)
ABSTRACT = Tool(
    name="abstract",
    description="Says in the root where this conversation stands. Each one replaces the last.",
    arguments=Abstract,
    run=_abstract,
    replay_safe=True,
)
DOCUMENT_LIST = Tool(
    name="document_list",
    description="Lists the live documents that this conversation sees, which people and agents edit together.",
    arguments=Nothing,
    run=_list_documents,
    replay_safe=True,
    reads_only=True,
)
DOCUMENT_READ = Tool(
    name="document_read",
    description="Shows a part of a live document and says where to read on.",
    arguments=ReadDocument,
    run=_read_document,
    replay_safe=True,
    reads_only=True,
)
DOCUMENT_EDIT = Tool(
    name="document_edit",
    description="Edits a live document: each old_string must occur exactly once. A refusal says how often it did, and where.",
    arguments=EditDocument,
    run=_edit_document,
    replay_safe=True,
)
ATTACHMENT_LIST = Tool(
    name="attachment_list",
    description="Lists the files attached to this conversation.",
    arguments=Nothing,
    run=_list_attachments,
    replay_safe=True,
    reads_only=True,
)
ATTACHMENT = Tool(
    name=ATTACHMENT_READ,
    description="Shows a part of an attachment's text and says where to read on.",
    arguments=ReadAttachment,
    run=_read_attachment,
    replay_safe=True,
    reads_only=True,
)

CONSOLE_TOOLS = (
    NOTE,
    NOTIFY,
    MEMORY,
    REMEMBER,
    BRANCH,
    SPAWN,
    ABSTRACT,
    DOCUMENT_LIST,
    DOCUMENT_READ,
    DOCUMENT_EDIT,
    ATTACHMENT_LIST,
    ATTACHMENT,
)

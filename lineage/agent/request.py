"""The body of a model request (A1), pure given its inputs: fixed order, exact in bytes, no call parted from its result.

What yields when the body would be too long, in this order: attachments become list lines, older messages go, AGENTS.md
goes. If the newest input still does not fit, `RequestTooLong` carries the ledger. A body under the cap is byte for byte
what it would be without one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lineage.agent.images import image_bytes, images_of, within_budget
from lineage.agent.ledger import Ledger, LeftOut, Receipt, receive, weigh
from lineage.agent.messages import Block, Message, encode, joined
from lineage.agent.prompt import Agents

REQUEST_CAP = 256 * 1024
"""Bytes of a body without its images: about 65,000 tokens, which with the answer fits a window of 128,000."""

MAX_TOKENS = 16_384
"""Tokens of an answer, its thinking included."""

_CACHED = {
    "cache_control": {"type": "ephemeral"}
}  # the provider keeps what stands before this mark and charges a tenth
_NO_OPENING = "(This conversation begins without anyone's words.)"
_NO_ROOM = "AGENTS.md of this folder was left out of this request: the conversation left no room for it. Read it with read_file."


@dataclass(frozen=True, kw_only=True)
class Attached:
    """An attachment as entry `seq` brought it: the text that the body carries, and the list line when that has to yield (D19).

    `carried` are its code points in the text; 0: the text is a list line itself. A `picture` is an image block; it goes with
    the messages, as any image does, `text` before it, and is named by its `line` where its message was left out.
    """

    name: str
    seq: int
    text: str
    line: str
    carried: int = 0
    picture: Block | None = None


@dataclass(frozen=True, kw_only=True)
class Tail:
    """The end of a conversation's context (L4): `messages` of the entries from `first` on, and those of its head before them.

    `start` is the number of the first entry after the head; the tail is whole when it begins there.
    """

    head: Sequence[Message] = ()
    messages: Sequence[Message] = ()
    start: int = 1
    first: int = 1

    @property
    def is_whole(self) -> bool:
        return self.first <= self.start


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All that a body is made of, beside the conversation."""

    conversation: int
    model: str
    system: str
    lineage: str = ""
    agents: Agents = field(default_factory=Agents)
    tools: Sequence[Mapping[str, Any]] = ()
    thinking: Mapping[str, Any] | None = None
    attached: Sequence[Attached] = ()
    memories: Mapping[str, str] = field(default_factory=dict)  # slug: its index line, as the brief has it


@dataclass(frozen=True, kw_only=True)
class Assembled:
    body: bytes
    ledger: Ledger
    receipt: Receipt


class RequestTooLong(Exception):
    """Not even the newest input fits. The ledger is that of the shortest body there could be."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(
            f"The request would have {ledger.counted} bytes without images; at most {ledger.cap} are sent. The newest "
            "input alone does not fit. Send a shorter one, or put the text in a document or a file that can be read in parts."
        )
        self.ledger = ledger


def assemble(inputs: Inputs, tails: Iterable[Tail], *, cap: int = REQUEST_CAP) -> Assembled:
    """The body, its ledger and its receipt. `tails` reach further and further back, the last one is whole; only as many are
    taken as the cap can hold. Raises `RequestTooLong`."""
    tail = _long_enough(tails, cap)
    messages = within_budget(_with_pictures(inputs, tail.messages), inputs.conversation)
    head = within_budget(tail.head, inputs.conversation)
    notes = (inputs.agents.why,) if inputs.agents.why else ()
    if tail.is_whole and (uncut := _uncut(inputs, head, messages, cap)) is not None:
        body, carried = uncut
        return _assembled(inputs, body, inputs.agents.text, carried, None, cap, notes)
    for agents in (inputs.agents.text, _NO_ROOM) if inputs.agents.text else ("",):
        shown = (*notes, _NO_ROOM) if agents == _NO_ROOM else notes
        for found, left_out in _cuts(inputs, tail, head, messages, room=cap - len(_body(inputs, agents, ()))):
            body = _body(inputs, agents, found)
            if _counted(body, found) <= cap:
                return _assembled(inputs, body, agents, 0, left_out, cap, shown)
    raise RequestTooLong(_assembled(inputs, body, agents, 0, left_out, cap, shown).ledger)


def _uncut(inputs: Inputs, head: Sequence[Message], messages: Sequence[Message], cap: int) -> tuple[bytes, int] | None:
    """The body with every message, and how many attachments it carries as text: all, else the most that fit; none when not
    even their list lines fit."""

    def body_with(carried: int) -> bytes | None:
        body = _body(inputs, inputs.agents.text, _opened(_attach(inputs, head, messages, carried)))
        return body if _counted(body, messages, head) <= cap else None

    carried, too_many = len(inputs.attached), len(inputs.attached)
    if (body := body_with(carried)) is not None:
        return body, carried
    if not inputs.attached or (body := body_with(0)) is None:
        return None
    carried = 0
    while too_many - carried > 1:  # each body is a quarter of a MB: not one for each of many attachments
        middle = (carried + too_many) // 2
        if (found := body_with(middle)) is None:
            too_many = middle
        else:
            body, carried = found, middle
    return body, carried


def _with_pictures(inputs: Inputs, messages: Sequence[Message]) -> list[Message]:
    """The messages with each attached picture in the one of the entry that brought it."""
    found = list(messages)
    for attached in inputs.attached:
        place = max((place for place, message in enumerate(found) if message.seq <= attached.seq), default=-1)
        if attached.picture is None or place < 0 or found[place].role != "user":
            continue
        shown: list[Block] = [{"type": "text", "text": attached.text}, attached.picture]
        message = found[place]
        found[place] = Message(role=message.role, content=[*message.content, *shown], seq=message.seq)
    return found


def _long_enough(tails: Iterable[Tail], cap: int) -> Tail:
    tail = Tail()
    for tail in tails:
        size = sum(len(message.encoded) - _image_bytes(message) for message in tail.messages)
        if tail.is_whole or (size > cap and any(_is_input(message) for message in tail.messages)):
            break
    return tail


def _cuts(
    inputs: Inputs, tail: Tail, head: Sequence[Message], messages: Sequence[Message], *, room: int
) -> Iterable[tuple[list[Message], LeftOut | None]]:
    """What may be kept, the longest first. A cut falls before a person's words, or, after the newest of those, before an answer:
    then the newest words stand in front. The shortest comes last, whether it fits or not."""
    newest = max((place for place, message in enumerate(messages) if _is_input(message)), default=-1)
    places = [
        place
        for place, message in enumerate(messages)
        if _is_input(message) or (message.role == "assistant" and place > newest)
    ] or [len(messages)]
    behind = _bytes_behind(messages)
    for place in places:
        if place != places[-1] and behind[place + 1] > room:
            continue
        yield _cut(inputs, tail, head, messages, place, newest)


def _bytes_behind(messages: Sequence[Message]) -> list[int]:
    """What is sent of the messages from each place on, at least: adjacent ones of a role share one frame."""
    behind = [0] * (len(messages) + 1)
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        shares = place + 1 < len(messages) and messages[place + 1].role == message.role
        frame = len(encode({"role": message.role, "content": []})) if shares else 0
        behind[place] = behind[place + 1] + len(message.encoded) - frame - _image_bytes(message)
    return behind


def _cut(
    inputs: Inputs, tail: Tail, head: Sequence[Message], messages: Sequence[Message], place: int, newest: int
) -> tuple[list[Message], LeftOut | None]:
    pinned = messages[newest : newest + 1] if place > newest >= 0 else []
    kept = [_words_of(message) for message in pinned]
    if place < len(messages):
        kept += [messages[place] if place > newest else _words_of(messages[place]), *messages[place + 1 :]]
    last = (messages[place].seq if place < len(messages) else tail.first) - 1
    if last < tail.start:
        return _opened(_attach(inputs, head, kept, 0)), None
    spared = messages[newest + 1].seq - messages[newest].seq if pinned and newest + 1 <= place else 0
    left_out = LeftOut(first=tail.start, last=last, kept=spared)
    said = Message(
        role="user", content=[{"type": "text", "text": _sentence(inputs.conversation, left_out, pinned)}], seq=0
    )
    return _opened(_attach(inputs, [*head, said], kept, 0)), left_out


def _sentence(conversation: int, left_out: LeftOut, pinned: Sequence[Message]) -> str:
    apart = f", apart from #{conversation}/{pinned[0].seq}, which follows" if pinned else ""
    return (
        f"({left_out.entries} earlier entries of this conversation, #{conversation}/{left_out.first} to "
        f"#{conversation}/{left_out.last}{apart}, are not in this request: it would be too long. What they said is not lost, "
        "only out of your sight: say so if you need it.)"
    )


def _attach(inputs: Inputs, head: Sequence[Message], messages: Sequence[Message], carried: int) -> list[Message]:
    """Head and messages joined, with the first `carried` attachments as text and the others as list lines, each in the message of
    the entry that brought it, or in front where that one was left out."""
    first = messages[0].seq if messages else None
    texts = [
        (a.seq, a.text if number < carried and a.picture is None else a.line)
        for number, a in enumerate(inputs.attached)
        if a.picture is None or first is None or a.seq < first
    ]
    found, waiting = list(head), [text for seq, text in texts if not messages or seq < messages[0].seq]
    bounds = [*(message.seq for message in messages[1:]), None]
    for message, end in zip(messages, bounds, strict=True):
        if waiting and message.role == "user" and not message.answers_calls:
            found.append(_texts_as_message(waiting))
            waiting = []
        found.append(message)
        waiting += [text for seq, text in texts if message.seq <= seq and (end is None or seq < end)]
        if message.role == "user" and waiting:
            found.append(_texts_as_message(waiting))
            waiting = []
    return joined([*found, _texts_as_message(waiting)])


def _texts_as_message(texts: Sequence[str]) -> Message:
    return Message(role="user", content=[{"type": "text", "text": text} for text in texts], seq=0)


def _opened(messages: list[Message]) -> list[Message]:
    if messages and messages[0].role == "user":
        return messages
    return [Message(role="user", content=[{"type": "text", "text": _NO_OPENING}], seq=0), *messages]


def _body(inputs: Inputs, agents: str, messages: Sequence[Message]) -> bytes:
    """The body as it is sent. Nothing after this touches its bytes."""
    system: list[Block] = [{"type": "text", "text": text} for text in (inputs.system, inputs.lineage, agents) if text]
    system[-1] = {**system[-1], **_CACHED}
    frame: dict[str, Any] = {"model": inputs.model, "max_tokens": MAX_TOKENS, "stream": True}
    if inputs.thinking:
        frame["thinking"] = inputs.thinking
    frame["system"] = system
    if inputs.tools:
        frame["tools"] = list(inputs.tools)
    encoded = [message.encoded for message in messages[:-1]]
    encoded += [_marked(message).encoded for message in messages[-1:]]
    return encode(frame)[:-1] + b',"messages":[' + b",".join(encoded) + b"]}"


def _marked(message: Message) -> Message:
    last: Block = message.content[-1]
    if last.get("type") not in {"text", "image", "document", "tool_result", "tool_use"}:
        return message
    return Message(role=message.role, content=[*message.content[:-1], {**last, **_CACHED}], seq=message.seq)


def _assembled(
    inputs: Inputs,
    body: bytes,
    agents: str,
    carried: int,
    left_out: LeftOut | None,
    cap: int,
    notes: tuple[str, ...],
) -> Assembled:
    own = inputs.agents if agents == inputs.agents.text else Agents(total=inputs.agents.total)
    return Assembled(
        body=body,
        ledger=weigh(
            body,
            lineage=inputs.lineage,
            agents=agents,
            memories=inputs.memories,
            attachments={a.name: a.text for a in inputs.attached[:carried] if _is_text(a)},
            listed={
                a.name: a.line if a.carried else a.text
                for number, a in enumerate(inputs.attached)
                if number >= carried or not _is_text(a)
            },
            left_out=left_out,
            cap=cap,
            notes=notes,
        ),
        receipt=receive(
            body,
            agents=own.text,
            characters=own.characters,
            total=inputs.agents.total,
            memories=inputs.memories,
            attachments={a.name: (a.text, a.carried) for a in inputs.attached[:carried] if _is_text(a)},
        ),
    )


def _is_text(attached: Attached) -> bool:
    return attached.picture is None and attached.carried > 0


def _is_input(message: Message) -> bool:
    return message.role == "user" and message.says_more


def _words_of(message: Message) -> Message:
    """The message without tool results: their calls were left out with all that came before."""
    if not message.answers_calls:
        return message
    words = [block for block in message.content if block.get("type") != "tool_result"]
    return Message(role=message.role, content=words, seq=message.seq)


def _counted(body: bytes, *messages: Sequence[Message]) -> int:
    return len(body) - sum(_image_bytes(message) for group in messages for message in group)


def _image_bytes(message: Message) -> int:
    return sum(image_bytes(image) for image in images_of(message.content)) if message.may_hold_images else 0

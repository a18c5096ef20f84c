"""Attachments in a model request (D19, A1): what an input brings, what is carried, what is only named, and how far was read."""

import base64
import re
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from pytest_django import Settings

from console.access import Who
from console.errors import DomainError
from documents.attachments.limits import INJECTION_CHARS, NAMED
from documents.attachments.storing import attachments_folder
from documents.models import Attachment
from lineage.actions.attachments import take_back_attachment, upload_attachment
from lineage.agent.history import tails_of
from lineage.agent.inputs import inputs_of
from lineage.agent.request import assemble
from lineage.models import Conversation, Entry
from lineage.sent import sent_requests
from lineage.state import conversation_state
from tests.factories import make_agent, make_fork, make_person, make_root
from tests.lineage.agent.fakemodel import FakeModel
from tests.lineage.agent.test_approvals import calls, result
from tests.lineage.agent.test_turns import ask
from tests.lineage.working import work

pytestmark = pytest.mark.django_db


@pytest.fixture
def who(settings: Settings, tmp_path: Path) -> Who:
    settings.ATTACHMENTS_DIR = tmp_path / "attachments"
    return make_person()


@pytest.fixture
def conversation(who: Who) -> Conversation:
    return make_root(who).conversation


def attach(who: Who, conversation: Conversation, content: bytes | str, filename: str = "plan.txt") -> Attachment:
    """An uploaded file whose text was extracted."""
    data = content.encode() if isinstance(content, str) else content
    made = upload_attachment(who=who, conversation=conversation.pk, filename=filename, chunks=[data])
    work()
    return Attachment.objects.get(pk=made.pk)


def picture() -> bytes:
    file = BytesIO()
    Image.new("RGB", (4, 4), "red").save(file, "PNG")
    return file.getvalue()


def sent_texts(model: FakeModel, number: int = -1) -> list[str]:
    return [
        block["text"]
        for message in model.requests()[number]["messages"]
        for block in message["content"]
        if block["type"] == "text"
    ]


def test_an_input_brings_its_text_to_the_model(model: FakeModel, who: Who, conversation: Conversation) -> None:
    file = attach(who, conversation, "Ship on Thursday.")
    model.says("Noted.")
    ask(who, conversation, "Read this.", attachments=[file.name])
    work()
    assert sent_texts(model) == ["Read this.", f"Attachment plan.txt ({file.name}):\nShip on Thursday."]
    file.refresh_from_db()
    assert (file.seq, file.read) == (1, 17)
    assert '"filename":"plan.txt"' in Entry.objects.get(conversation=conversation, seq=1).data.replace(": ", ":")
    (sent,) = sent_requests(conversation)
    assert sent.ledger["attachments_carried"] == 1
    assert sent.ledger["attachments"] > 17
    assert sent.receipt is not None
    assert sent.receipt["attachments"] == {file.name: 17}


def test_the_tool_goes_on_where_the_request_ended(model: FakeModel, who: Who, conversation: Conversation) -> None:
    """D19: called with exactly what the list line prints."""
    text = "".join(f"{number:06} é\n" for number in range(INJECTION_CHARS // 9 + 2_000))
    file = attach(who, conversation, text)
    other = attach(who, conversation, "never begun", "other.txt")
    model.says("Reading on.")
    ask(who, conversation, "Read all.", attachments=[file.name, other.name])
    work()
    _, carried, named = sent_texts(model)
    line = re.compile(r"(\d+) of (\d+) characters shown\. Read on with (\w+), name=(\S+), offset=(\d+)\.")
    ((shown, total, tool, name, offset),) = line.findall(carried)
    assert (int(shown), int(total), int(offset)) == (INJECTION_CHARS, len(text), INJECTION_CHARS)
    assert carried.startswith(f"Attachment plan.txt ({file.name}):\n{text[:INJECTION_CHARS]}\n\n")
    assert line.findall(named) == [("0", "11", tool, other.name, "0")]

    calls(model, {"name": tool, "arguments": {"name": name, "offset": int(offset)}})
    ask(who, conversation, "Go on.", attachments=[])
    work()
    assert result(conversation)["content"].startswith(text[INJECTION_CHARS : INJECTION_CHARS + 8_000])
    file.refresh_from_db()
    other.refresh_from_db()
    assert (file.read, other.read) == (INJECTION_CHARS + 8_000, 0)
    (first, _) = conversation_state(conversation)["attachments"]
    assert (first["read"], first["chars"], first["entry"]) == (file.read, len(text), 1)


def test_what_has_no_text_is_named_with_the_reason(model: FakeModel, who: Who, conversation: Conversation) -> None:
    empty = attach(who, conversation, "", "empty.txt")
    late = upload_attachment(who=who, conversation=conversation.pk, filename="late.md", chunks=[b"x"])
    model.says("I see none.")
    Attachment.objects.filter(pk=late.pk).update(status="pending")
    ask(who, conversation, "Look.")
    work()
    first = sent_texts(model, 0)
    assert f"Attachment {empty.name} (empty.txt, text/plain): no text, an empty file." in first


def test_a_picture_goes_as_a_picture(model: FakeModel, who: Who, conversation: Conversation) -> None:
    file = attach(who, conversation, picture(), "shot.png")
    model.says("Red.")
    ask(who, conversation, "Which colour?", attachments=[file.name])
    work()
    (message,) = model.requests()[-1]["messages"]
    shown = {key: value for key, value in message["content"][-1].items() if key != "cache_control"}
    data = base64.b64encode(picture()).decode()
    assert shown == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    assert message["content"][-2]["text"] == f"Attachment {file.name} (shot.png, image/png), a picture:"
    assert sent_requests(conversation)[0].ledger["images_kept"] == 1


def test_without_names_an_input_brings_what_its_author_uploaded(
    model: FakeModel, who: Who, conversation: Conversation
) -> None:
    agent, _ = make_agent(conversation.root)
    theirs, own = attach(agent, conversation, "theirs"), attach(who, conversation, "own")
    for word in ("one", "two"):
        model.says("Good.")
        ask(who, conversation, word)
        work()
    theirs.refresh_from_db()
    own.refresh_from_db()
    prompts = Entry.objects.filter(conversation=conversation).exclude(prompt="").order_by("seq")
    assert [(entry.prompt, own.name in entry.data) for entry in prompts] == [("one", True), ("two", False)]
    assert (theirs.seq, own.seq) == (None, prompts[0].seq)
    assert sent_texts(model)[-4:] == ["one", f"Attachment plan.txt ({own.name}):\nown", "Good.", "two"]


def test_a_fork_sees_what_stood_before_it(model: FakeModel, who: Who, conversation: Conversation) -> None:
    before = attach(who, conversation, "before")
    model.says("One.")
    ask(who, conversation, "one", attachments=[before.name])
    work()
    after = attach(who, conversation, "after")
    model.says("Two.")
    ask(who, conversation, "two", attachments=[after.name])
    work()
    conversation.refresh_from_db()
    fork = make_fork(conversation, 2)
    model.says("Forked.")
    ask(who, fork, "fork")
    work()
    (request,) = [body for body in model.bodies if b'"fork"' in body]
    assert before.name.encode() in request
    assert after.name.encode() not in request
    assert [item["name"] for item in conversation_state(fork)["attachments"]] == [before.name]


@pytest.mark.parametrize(("less", "carried"), [(0, 2), (3_000, 1), (7_500, 0)])
def test_a_full_request_names_before_it_forgets(
    model: FakeModel, who: Who, conversation: Conversation, less: int, carried: int
) -> None:
    """A1: attachments become list lines, the last first, before older messages go."""
    files = [attach(who, conversation, character * 4_000) for character in "ab"]
    model.says("Good.")
    ask(who, conversation, "old", attachments=[file.name for file in files])
    work()
    conversation.refresh_from_db()
    inputs = inputs_of(conversation, model="m", name="wren")
    whole = assemble(inputs, tails_of(conversation))
    found = assemble(inputs, tails_of(conversation), cap=len(whole.body) - less)
    assert (found.ledger.attachments_carried, found.ledger.attachments_listed) == (carried, 2 - carried)
    assert found.ledger.entries_left_out == 0
    assert (found.body == whole.body) == (less == 0)


def test_names_that_are_not_here_are_refused(who: Who, conversation: Conversation) -> None:
    elsewhere = attach(who, make_root(who).conversation, "x")
    for names, code in (
        ([elsewhere.name], "not_found"),
        (["../etc/passwd"], "not_found"),
        ([elsewhere.name] * (NAMED + 1), "invalid"),
    ):
        with pytest.raises(DomainError) as refused:
            ask(who, conversation, "Read.", attachments=names)
        assert refused.value.code == code
    assert not Entry.objects.filter(conversation=conversation).exists()


@pytest.mark.django_db(transaction=True)
def test_what_was_not_sent_can_be_taken_back(model: FakeModel, who: Who, conversation: Conversation) -> None:
    unsent, sent = attach(who, conversation, "unsent"), attach(who, conversation, "sent")
    late = upload_attachment(who=who, conversation=conversation.pk, filename="late.txt", chunks=[b"late"])
    model.says("Good.")
    ask(who, conversation, "Read.", attachments=[sent.name])
    take_back_attachment(who=who, name=unsent.name)
    take_back_attachment(who=who, name=late.name)
    with pytest.raises(DomainError) as refused:
        take_back_attachment(who=who, name=sent.name)
    assert refused.value.code == "brought"
    work()
    assert [row.name for row in Attachment.objects.all()] == [sent.name]
    assert sorted(path.name for path in attachments_folder().iterdir()) == [sent.name, f"{sent.name}.extracted"]

"""An agent at work, from a prompt to its end, as people see and steer it (A1 to A6): two operators, a subagent, a live document."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from console.access import Who
from console.clock import now
from console.models import Membership, Role
from documents.texts import text_at
from lineage.models import Conversation, Root
from tests.browser.conftest import Tabs
from tests.factories import make_document, make_person, make_root
from tests.lineage.agent.fakemodel import FakeModel, Fault, fake_model
from tests.lineage.agent.workers import Workers

STREAMED = "I will read the notes first and then mend what is broken in them"
PATIENCE = 30_000  # ms; a loaded machine answers late


@pytest.fixture(scope="module")
def running() -> Iterator[FakeModel]:
    """The model, and an environment in which the web server finds it."""
    with fake_model() as found:
        told = {"CONSOLE_MODEL": "fake-large", "ANTHROPIC_BASE_URL": found.url}
        before = {name: os.environ.get(name) for name in told}
        os.environ.update(told)
        yield found
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@pytest.fixture(scope="module")
def site(running: FakeModel, site: str) -> str:
    """The web server, with a model configured."""
    return site


@pytest.fixture
def worker(running: FakeModel, tabs: Tabs) -> Iterator[None]:
    """A worker that runs what is due as long as the test lasts."""
    workers = Workers(running.url)
    number = workers.start(for_ever=True)
    yield
    workers.kill(number)
    workers.process.communicate()


@pytest.fixture
def root(mira: Who, tmp_path: Path) -> Root:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "cache").mkdir()
    return make_root(mira, folder=str(tmp_path))


@pytest.fixture
def teo(root: Root) -> Who:
    who = make_person("teo")
    Membership.objects.create(root=root, actor_id=who.actor, role=Role.OPERATOR, created=now())
    return who


def play(model: FakeModel, document: int) -> None:
    """What the model does: by what it was told last, the latest first."""

    def call(name: str, **arguments: object) -> dict[str, object]:
        return {"tool_calls": [{"name": name, "arguments": arguments}]}

    edits = [{"old_string": "Steps:", "new_string": "Steps, as the agent sees them:"}]
    model.rules(
        {
            "when": {"messages_contain": "CHILD TASK", "tool_result_contains": "Exit code 0"},
            "respond": {"content": "The helper has run it."},
        },
        {"when": {"messages_contain": "CHILD TASK"}, "respond": call("run_command", command="echo deep > deep.txt")},
        {"when": {"tool_result_contains": "Recorded as revision"}, "respond": {"content": "All is done."}},
        {
            "when": {"tool_result_contains": "The helper has run it"},
            "respond": call("document_edit", document=document, edits=edits),
        },
        {"when": {"tool_result_contains": "declined"}, "respond": call("spawn", prompt="CHILD TASK", title="Helper")},
        {"when": {"tool_result_contains": "was edited"}, "respond": call("run_command", command="rm -r cache")},
        {
            "respond": {
                "content": STREAMED,
                **call("edit_file", path="a.txt", old_string="two", new_string="2"),
            }
        },
    )


def open_conversation(tabs: Tabs, who: Who, number: int) -> Page:
    page = tabs.open(who)
    page.set_default_timeout(PATIENCE)
    page.goto(f"/conversations/{number}/")
    expect(page.locator("#flow[data-live]")).to_have_count(1, timeout=PATIENCE)
    return page


@pytest.mark.timeout(300)  # three processes, four tabs and a run: half a minute on an idle machine
def test_a_run_from_its_prompt_to_its_end(
    tabs: Tabs, running: FakeModel, worker: None, mira: Who, teo: Who, root: Root, tmp_path: Path
) -> None:
    number = root.pk
    document = make_document(mira, number, "Plan\n\nSteps:\n")
    play(running, document.pk)
    expect.set_options(timeout=PATIENCE)
    own, watching = open_conversation(tabs, mira, number), open_conversation(tabs, teo, number)

    # Prompt, and an answer that both see growing.
    running.faults.append(Fault(hold_after=12))
    own.get_by_label("Message").fill("Mend the notes")
    own.get_by_label("Message").press("Enter")
    for page in (own, watching):
        expect(page.locator("#draft .draft-text")).to_have_text(re.compile(r"^I will read the notes"))
        expect(page.locator("#conv-state")).to_contain_text("Running")
    running.go.set()

    # One operator approves the edit while another watches.
    for page in (own, watching):
        expect(page.locator(".approval")).to_contain_text("a.txt")
        expect(page.locator(".approval tr.add")).to_contain_text("2")
        expect(page.locator("#draft")).to_be_hidden()
        expect(page.locator("#entries")).to_contain_text(STREAMED)
    own.locator(".approval").get_by_role("button", name="Approve", exact=False).first.click()
    expect(watching.locator("#entries summary", has_text="edit_file")).to_contain_text("+1")

    # The other declines the command, with a comment that reaches the model.
    expect(watching.locator(".approval .cmd")).to_have_text("rm -r cache")
    watching.locator(".approval").get_by_label("Comment").fill("The farm reads it.")
    watching.locator(".approval").get_by_role("button", name="Decline").click()
    expect(own.locator("#entries summary", has_text="rm -r cache")).to_contain_text("declined")
    assert (tmp_path / "a.txt").read_text() == "one\n2\n"
    assert (tmp_path / "cache").is_dir()

    # A subagent asks, in the team's queue, with the way to it.
    expect(own.locator("#conv-state")).to_contain_text("Waiting for a child")
    queue = tabs.open(teo)
    queue.goto("/approvals/")
    asked = queue.locator("article.ap")
    expect(asked).to_contain_text("Helper")
    expect(asked.locator(".cmd")).to_have_text("echo deep > deep.txt")
    child = Conversation.objects.get(kind="agent")
    expect(asked.locator(".path")).to_contain_text(f"#{child.pk}")

    # The document, in which a person types while the agent edits it.
    editor = tabs.open(mira)
    editor.goto(f"/documents/{document.pk}/")
    expect(editor.locator(".cm-content")).to_contain_text("Steps:")
    editor.locator(".cm-line").first.click()
    editor.keyboard.press("End")
    editor.keyboard.type(" for spring")
    asked.get_by_role("button", name="Approve").first.click()
    expect(queue.locator("article.ap")).to_have_count(0)
    editor.keyboard.type(" and summer")
    expect(editor.locator(".cm-content")).to_contain_text("Steps, as the agent sees them")
    expect(editor.locator(".cm-line").first).to_have_text(re.compile("Plan for spring and summer"))

    # The end, and what it cost.
    for page in (own, watching):
        expect(page.locator("#entries")).to_contain_text("All is done.")
        expect(page.locator("#conv-state")).to_contain_text("Idle")
    expect(own.locator("#conv-usage")).to_contain_text(re.compile(r"Own cost\s*\$\W*\d+\.\d\d"))
    expect(own.locator("#conv-usage")).to_contain_text("With subagents")
    expect(own.locator("#conv-sent")).to_contain_text("fake-large")
    document.refresh_from_db()
    assert text_at(document, document.revision) == "Plan for spring and summer\n\nSteps, as the agent sees them:\n"
    assert (tmp_path / "deep.txt").read_text() == "deep\n"
    declined = [r for r in running.requests() if "The farm reads it." in json.dumps(r)]
    assert declined

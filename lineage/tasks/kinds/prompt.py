"""*prompt*: makes a branch's prompt its first input (L12). It is made with the branch, so that a crash leaves none without,
and it is a foreground task: waiting for the branch waits for its prompt and the run that it starts."""

from console.requests import remember, remembered
from lineage.actions.runs import place_and_run
from lineage.actions.submissions import NewSubmission, enqueue
from lineage.models import SubmissionType
from lineage.tasks.definitions import Definition, register_kind
from lineage.tasks.running import Run

KEY = "lineage:prompt"  # the same in every branch: forks inherit no request ids (R4)


def deliver(run: Run) -> None:
    """The prompt, before anything that was queued meanwhile."""
    with run.commit() as commit:
        conversation = commit.conversation
        receiver = f"conversation:{conversation.pk}"
        if remembered(receiver=receiver, actor=None, request_id=KEY) is None:
            new = NewSubmission(
                type=SubmissionType.INPUT,
                kind="user",
                model=[{"role": "user", "content": run.input["content"]}],
                author=run.input.get("author"),
            )
            submission = enqueue(conversation=conversation, new=new)
            place_and_run(conversation=conversation, submissions=[submission])
            remember(receiver=receiver, actor=None, request_id=KEY, result={"id": submission.pk})
        commit.complete()


PROMPT = register_kind(
    Definition(kind="prompt", version=1, first="deliver", phases={"deliver": deliver}, foreground=True)
)

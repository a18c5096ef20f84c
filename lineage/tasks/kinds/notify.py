"""*notify*: waits until a conversation is idle with an answer that its caller was not told, then tells it, once (L22, L23).

Both phases run for many tasks in one commit: a conversation that finishes may have hundreds of waiters (L11).
"""

from collections.abc import Sequence

from lineage.actions.deliveries import FINISHED, NO_ANSWER, Finish, deliver_finishes
from lineage.actions.settling import is_idle, owned_by
from lineage.actions.wakes import conversation_subject
from lineage.loading import last_own_answer
from lineage.models import Conversation, Delivered
from lineage.tasks.definitions import Definition, register_kind
from lineage.tasks.running import Run, commit_together


def wait(run: Run) -> None:
    """Look, and tell or park, under the locks of the target and of all that it owns (L11)."""
    wait_together([run])


def wait_together(runs: Sequence[Run]) -> None:
    targets = {int(run.input["target"]) for run in runs}
    owned = {target: owned_by(target) for target in sorted(targets)}
    watched = {*targets, *(child for children in owned.values() for child in children)}
    with commit_together(runs, conversations=sorted(watched)) as together:
        found = {target: _answer(together.conversations[target]) for target in sorted(targets)}
        grown = {target for target in targets if owned_by(target) != owned[target]}
        told = _told([run.conversation for run in together.runs], targets)
        for run in together.runs:
            commit, target = together.of(run), int(run.input["target"])
            row = together.conversations[target]
            if target in grown:
                commit.retry(after_s=0, why="A subagent was started meanwhile.")
                continue
            answer = found[target]
            delivered = told.get((run.conversation, target))
            if answer is None or (delivered is not None and answer[0] <= delivered):
                why = f"waits for #{target} {row.title}".rstrip()
                commit.wait(conversation_subject(target), why=why)
                continue
            seq, text = answer
            said = text if len(text) <= FINISHED else f"{text[:FINISHED]}…"
            commit.go("deliver", {"title": row.title, "text": said or NO_ANSWER, "answer": seq})


def deliver(run: Run) -> None:
    """Tell what was fixed when the target was found idle; done and told are one transaction."""
    deliver_together([run])


def deliver_together(runs: Sequence[Run]) -> None:
    with commit_together(runs) as together:
        finishes = [
            Finish(
                task=run.task,
                caller=run.conversation,
                target=int(run.input["target"]),
                title=str(run.facts["title"]),
                text=str(run.facts["text"]),
                answer=int(run.facts["answer"]),
                wake=bool(run.input["wake"]),
            )
            for run in together.runs
        ]
        deliver_finishes(finishes=finishes, callers=together.conversations)
        for run in together.runs:
            together.of(run).complete({"answer": run.facts["answer"]})


def _answer(target: Conversation) -> tuple[int, str] | None:
    """The newest own answer of an idle conversation, (0, "") when it gave none; none while it is not idle."""
    return last_own_answer(target) if is_idle(target) else None


def _told(callers: Sequence[int], targets: set[int]) -> dict[tuple[int, int], int]:
    rows = Delivered.objects.filter(caller__in=callers, target__in=targets)
    return {(row.caller_id, row.target_id): row.answer for row in rows}


NOTIFY = register_kind(
    Definition(
        kind="notify",
        version=1,
        first="wait",
        phases={"wait": wait, "deliver": deliver},
        batches={"wait": wait_together, "deliver": deliver_together},
        foreground=False,
    )
)

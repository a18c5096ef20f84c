"""*notify*: waits until a conversation is idle with an answer that its caller was not told, then tells it, once (L22, L23).

Looking and telling are one commit, for many tasks at once: a conversation that finishes may have hundreds of waiters, and
the last of them is not to be told later than the first (L11).
"""

from collections.abc import Sequence
from dataclasses import replace

from lineage.actions.deliveries import FINISHED, NO_ANSWER, Finish, deliver_finishes
from lineage.actions.settling import is_idle, owned_by
from lineage.actions.wakes import conversation_subject
from lineage.loading import last_own_answer
from lineage.models import Conversation, Delivered
from lineage.tasks.definitions import Checkpoint, Definition, register_kind
from lineage.tasks.running import Run, commit_together


def wait(run: Run) -> None:
    """Look, and tell or park, under the locks of the caller, the target and all that the target owns (L11)."""
    wait_together([run])


def wait_together(runs: Sequence[Run]) -> None:
    """The same for many. What is told is what stood there when the target was found idle."""
    targets = {int(run.input["target"]) for run in runs}
    owned = {target: owned_by(target) for target in sorted(targets)}
    watched = {*targets, *(child for children in owned.values() for child in children)}
    with commit_together(runs, conversations=sorted(watched)) as together:
        found = {target: _answer(together.conversations[target]) for target in sorted(targets)}
        grown = {target for target in targets if owned_by(target) != owned[target]}
        told = _told([run.conversation for run in together.runs], targets)
        finishes: list[Finish] = []
        for run in together.runs:
            commit, target = together.of(run), int(run.input["target"])
            row = together.conversations[target]
            if run.facts:  # fixed by an older version, which told in a phase of its own
                finishes.append(_finish(run, **run.facts))
                commit.complete({"answer": run.facts["answer"]})
                continue
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
            finishes.append(_finish(run, title=row.title, text=said or NO_ANSWER, answer=seq))
            commit.complete({"answer": seq})
        deliver_finishes(finishes=finishes, callers=together.conversations)


def _finish(run: Run, *, title: str, text: str, answer: int) -> Finish:
    return Finish(
        task=run.task,
        caller=run.conversation,
        target=int(run.input["target"]),
        title=title,
        text=text,
        answer=answer,
        wake=bool(run.input["wake"]),
    )


def _answer(target: Conversation) -> tuple[int, str] | None:
    """The newest own answer of an idle conversation, (0, "") when it gave none; none while it is not idle."""
    return last_own_answer(target) if is_idle(target) else None


def _told(callers: Sequence[int], targets: set[int]) -> dict[tuple[int, int], int]:
    rows = Delivered.objects.filter(caller__in=callers, target__in=targets)
    return {(caller, target): answer for caller, target, answer in rows.values_list("caller", "target", "answer")}


def _brought_up(version: int, before: Checkpoint) -> Checkpoint:
    """Version 1 fixed what it told in the checkpoint of a phase `deliver`."""
    return replace(before, phase="wait")


NOTIFY = register_kind(
    Definition(
        kind="notify",
        version=2,
        first="wait",
        phases={"wait": wait},
        batches={"wait": wait_together},
        foreground=False,
        oldest=1,
        migrate=_brought_up,
    )
)

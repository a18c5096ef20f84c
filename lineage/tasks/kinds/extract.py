"""*extract*: turns an uploaded file into its sidecar, once, in a limited child process (D18, D22). A background task (L8)."""

from documents.attachments.extraction.parent import extract_once
from documents.attachments.storing import attachments_folder
from lineage.actions.attachments import record_extraction
from lineage.tasks.definitions import Definition, register_kind
from lineage.tasks.running import Run


def extract(run: Run) -> None:
    """The sidecar outside the transaction, its facts inside. Run twice, it finds the sidecar and reads it."""
    name = run.input["name"]
    meta = extract_once(folder=attachments_folder(), name=name, filename=run.input["filename"])
    with run.commit() as commit:
        record_extraction(conversation=commit.conversation, name=name, meta=meta)
        commit.complete()


EXTRACT = register_kind(
    Definition(kind="extract", version=1, first="extract", phases={"extract": extract}, foreground=False)
)

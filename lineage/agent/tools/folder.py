"""The five tools of a working folder (A2), in their fixed order."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from lineage.agent.folder.commands import SECONDS, run_command
from lineage.agent.folder.editing import edit_file
from lineage.agent.folder.reading import list_dir, read_file
from lineage.agent.folder.searching import search
from lineage.agent.prompt import READ_LINES
from lineage.agent.tools.definitions import Caller, Said, Tool
from lineage.transcripts.tools import joined, seconds_text


class ReadFile(Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="Path of the file, relative to the working folder.")]
    start_line: Annotated[int, Meta(description="First line to show, from 1.")] = 1
    end_line: Annotated[int | None, Meta(description="Last line to show, included.")] = None


class ListDir(Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="Path of the folder; left out: the working folder itself.")] = "."


class Search(Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(description="Plain text, a part of one line; not a pattern.")]
    path: Annotated[str, Meta(description="Folder or file to search in; left out: everything.")] = "."
    ignore_case: Annotated[bool, Meta(description="Whether capitals count as small letters.")] = False
    glob: Annotated[
        str, Meta(description="Only files whose name fits, such as *.py; with a slash: whose path fits.")
    ] = ""


class EditFile(Struct, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="Path of the file, relative to the working folder.")]
    old_string: Annotated[
        str, Meta(description="The text to replace: must occur exactly once in the file. Empty: create a new file.")
    ]
    new_string: Annotated[str, Meta(description="The text that takes its place.")]


class RunCommand(Struct, forbid_unknown_fields=True):
    command: Annotated[str, Meta(description="One command line for sh.")]


def _read(caller: Caller, given: ReadFile) -> Said:
    return Said(text=read_file(caller.folder, given.path, given.start_line, given.end_line))


def _list(caller: Caller, given: ListDir) -> Said:
    return Said(text=list_dir(caller.folder, given.path))


def _search(caller: Caller, given: Search) -> Said:
    return Said(text=search(caller.folder, given.text, given.path, given.ignore_case, given.glob))


def _edit(caller: Caller, given: EditFile) -> Said:
    return Said(text=edit_file(caller.folder, given.path, given.old_string, given.new_string, expected=caller.expected))


def _run(caller: Caller, given: RunCommand) -> Said:
    ran = run_command(caller.folder, given.command, stopped=caller.stopped)
    facts: dict[str, Any] = {"exit": ran.code, "seconds": round(ran.seconds, 1)}
    if ran.ended:
        facts["interrupted"] = True
    said = {"": f"exit {ran.code}", "time": f"ended after {SECONDS:.0f} s", "stop": "stopped"}[ran.ended]
    line = joined(said, seconds_text(ran.seconds) if ran.ended != "time" else "")
    return Said(text=ran.as_answer(), line=line, error=bool(ran.ended), facts=facts)


FOLDER_TOOLS = (
    Tool(
        name="read_file",
        description=f"Shows lines of a text file, at most {READ_LINES} at once, and says which lines it does not show.",
        arguments=ReadFile,
        run=_read,
        replay_safe=True,
        in_folder=True,
        reads_only=True,
    ),
    Tool(
        name="list_dir",
        description="Lists a folder: folders first, then files with their sizes in bytes.",
        arguments=ListDir,
        run=_list,
        replay_safe=True,
        in_folder=True,
        reads_only=True,
    ),
    Tool(
        name="search",
        description="Finds the lines of files that hold a text, as file:line: text. Links and version control are left out.",
        arguments=Search,
        run=_search,
        replay_safe=True,
        in_folder=True,
        reads_only=True,
    ),
    Tool(
        name="edit_file",
        description=(
            "Replaces a text that occurs exactly once in a file, or creates a file when old_string is empty. A person sees the "
            "change first and decides."
        ),
        arguments=EditFile,
        run=_edit,
        replay_safe=False,
        asks=True,
        in_folder=True,
    ),
    Tool(
        name="run_command",
        description=(
            f"Runs a command with sh in the working folder, without input, for at most {SECONDS:.0f} s, and shows the end of its "
            "output and its exit code. What it leaves running is ended. A person sees the command first and decides."
        ),
        arguments=RunCommand,
        run=_run,
        replay_safe=False,
        asks=True,
        in_folder=True,
    ),
)

"""What a model is told before the conversation: where it works and how, its place in the tree, the folder's AGENTS.md. Pure."""

from dataclasses import dataclass

AGENTS_FILE = "AGENTS.md"

AGENTS_CHARACTERS = 65_536
"""Characters of AGENTS.md that a request carries: a longer file is hardly instructions, and each request would pay for it."""

READ_LINES = 2_000
"""Lines that `read_file` shows at once. Named here since the prompt states it; `lineage.agent.folder` keeps to it."""


@dataclass(frozen=True, kw_only=True)
class Agents:
    """The AGENTS.md of a folder: `text` to send, `characters` of the trimmed file that it holds, `total` of it.

    `why` says in one line why nothing or less is sent; "" when there is nothing to say.
    """

    text: str = ""
    characters: int = 0
    total: int = 0
    why: str = ""


def agents_section(content: bytes | None) -> Agents:
    """From the file's bytes; none: no such file. Trimmed first, then counted; not UTF-8: left out, and said (A1)."""
    if content is None:
        return Agents()
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return Agents(why=f"{AGENTS_FILE} was left out: it is not UTF-8.")
    if not text:
        return Agents()
    total = len(text)
    if total <= AGENTS_CHARACTERS:
        return Agents(text=_introduced(text), characters=total, total=total)
    cut = text[:AGENTS_CHARACTERS]
    return Agents(
        text=_introduced(f"{cut}\n\n({_rest(total)})"), characters=AGENTS_CHARACTERS, total=total, why=_rest(total)
    )


def _introduced(text: str) -> str:
    return f"{AGENTS_FILE} of this folder:\n\n{text}"


def _rest(total: int) -> str:
    return (
        f"The rest of {AGENTS_FILE} was left out: it has {total} characters, and a request carries the first "
        f"{AGENTS_CHARACTERS}."
    )


def system_prompt(*, folder: str, name: str) -> str:
    """Where and how it works, in the model's eyes. `folder` is "" where no folder tools are offered.

    Facts in a fixed order, for the provider's cache; each has a test.
    """
    parts = [f"You are {name}, an agent whose work a team follows and steers in a shared console."]
    if folder:
        parts += [
            f"Your working folder is {folder}. Paths are relative to it, and whatever lies outside is out of reach.",
            "Look before you answer: what you say about a file rests on having read it in this conversation.",
            "list_dir shows the shape of a folder and how large its files are, read_file shows the part of a file that "
            "matters, search finds where something is.",
            f"read_file shows at most {READ_LINES} lines at once. In a longer file choose the part by start_line and "
            "end_line, and continue with the lines that the answer names as not shown.",
            "A search without a match is worth one more try in another form: with ignore_case, or with a glob such as "
            "*.py; the same search again finds the same nothing.",
            "A person sees each edit and each command before it happens and can decline it. When that happens, do not "
            "reach for the same end by another way: ask what is wanted instead.",
        ]
    else:
        parts.append("No working folder belongs to this conversation, so there are no files to read or change.")
    parts.append("Write short, plain answers.")
    return "\n".join(parts)

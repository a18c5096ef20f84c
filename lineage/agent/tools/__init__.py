"""The tools of agents, defined in one place, in a fixed order (A2, A4)."""

from collections.abc import Sequence

from lineage.agent.tools.console import CONSOLE_TOOLS, SPAWN
from lineage.agent.tools.definitions import Caller, Said, Tool
from lineage.agent.tools.folder import FOLDER_TOOLS

__all__ = ["INSIDE", "OUTSIDE", "Caller", "Said", "Tool", "find_tool", "offered"]

INSIDE: tuple[Tool, ...] = FOLDER_TOOLS + CONSOLE_TOOLS
OUTSIDE: tuple[Tool, ...] = tuple(
    tool for tool in CONSOLE_TOOLS if tool is not SPAWN
)  # over MCP, which adds inbox and append
_BY_NAME = {tool.name: tool for tool in INSIDE}


def find_tool(name: str) -> Tool | None:
    """The tool of that name that agents inside may call."""
    return _BY_NAME.get(name)


def offered(*, folder: str, only: Sequence[str] = ()) -> list[Tool]:
    """The tools of a conversation: those of the folder where it has one, and of a restricted agent only those named."""
    return [tool for tool in INSIDE if (folder or not tool.in_folder) and (not only or tool.name in only)]

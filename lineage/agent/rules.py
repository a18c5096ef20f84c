"""What a root's policies allow without asking (A3). Pure."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Any

from lineage.models import Rule


def fits(rule: Rule, arguments: Mapping[str, Any]) -> bool:
    """Whether the rule allows a call of its tool: this exact command, or a path that its pattern fits and that stays inside."""
    if rule.tool == "run_command":
        return arguments.get("command") == rule.match
    if rule.tool == "edit_file":
        path = plain_path(arguments)
        return not path.startswith(("../", "/")) and path != ".." and fnmatchcase(path, rule.match)
    return False


def is_rule_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """The narrowest rule that allows a call: what the page offers."""
    return str(arguments.get("command", "")) if tool == "run_command" else plain_path(arguments)


def plain_path(arguments: Mapping[str, Any]) -> str:
    return normpath(str(arguments.get("path", "")))

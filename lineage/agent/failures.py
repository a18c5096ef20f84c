"""Failures that a model reads: sentences that it can act on (A2)."""


class ToolFailed(Exception):
    """A call could not be done. The message says what happened, why, and what to do; it becomes an error result."""

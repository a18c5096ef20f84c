"""The one refusal of everything that starts processes."""


class CannotStart(Exception):
    """One sentence: what could not be started, why, and what to do. Shown as it is; the exit code is 1."""

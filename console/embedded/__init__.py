"""The embedded engines: a PostgreSQL and a Valkey that live and end with the command that started them.

`engines()` is for commands and tests; `console.supervisor` runs the same children for `up` and restarts them.
Only this package knows where the servers' programs come from.
"""

from console.embedded.errors import CannotStart
from console.embedded.running import engines

__all__ = ["CannotStart", "engines"]

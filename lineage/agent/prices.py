"""What an answer cost, where a price is known (A6). Pure."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from lineage.agent.provider import Answer


def cost_micros(answer: Answer, prices: Mapping[str, Mapping[str, float]]) -> int | None:
    """Millionths of a dollar, or none where no pattern of the table fits the model. A missing kind of price costs nothing."""
    for pattern, price in prices.items():
        if fnmatchcase(answer.model, pattern):
            tokens = {
                "input": answer.input_tokens,
                "output": answer.output_tokens,
                "cache_read": answer.cache_read_tokens,
                "cache_write": answer.cache_write_tokens,
            }
            # Dollars per million tokens are millionths of a dollar per token.
            return round(sum(count * price.get(kind, 0.0) for kind, count in tokens.items()))
    return None

"""Plain questions to a model, for the background tasks that summarise and remember (L18, L27)."""

from django.conf import settings

from lineage.actions.usages import record_usage
from lineage.agent.messages import encode
from lineage.agent.prices import cost_micros
from lineage.agent.provider import Answer, model_for, read_answer
from lineage.agent.request import MAX_TOKENS
from lineage.asking import Asker, register_asker
from lineage.models import Conversation

_SYSTEM = "You write for colleagues who work beside you. Answer exactly in the form that is asked for, with nothing around it."


def may_ask(conversation: Conversation) -> bool:
    """Whether a model is configured."""
    return model_for(conversation.model) is not None


def ask_model(conversation: Conversation, prompt: str) -> str:
    """The text of the answer. Raises `ProviderFailed`: the task that asks tries again by its own rules."""
    model = model_for(conversation.model)
    assert model is not None  # asked before
    body = encode(
        {
            "model": model,
            "max_tokens": MAX_TOKENS,
            "stream": True,
            "system": [{"type": "text", "text": _SYSTEM}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}],
        }
    )
    answer = Answer()
    read_answer(body, into=answer, stopped=lambda: False)
    record_usage(
        conversation=conversation.pk,
        message_id=answer.message_id,
        model=answer.model,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cache_read_tokens=answer.cache_read_tokens,
        cache_write_tokens=answer.cache_write_tokens,
        cost_micros=cost_micros(answer, settings.MODEL_PRICES),
    )
    return answer.text


register_asker(Asker(configured=may_ask, ask=ask_model))

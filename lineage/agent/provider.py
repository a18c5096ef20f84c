"""The one place that talks to a model: the official SDK against any server of the Messages API (A5).

A body goes out as the bytes that were assembled, and comes back as an `Answer` that grows. Reading runs on a thread of
its own, so that a stop is heard also while a server thinks in silence. Nothing is retried here: that is the generation
task's, which can wait without a worker.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from django.conf import settings

from lineage.agent.messages import Block

# The SDK's types take as long to import as everything else together: whoever asks a model waits for them, once.
if TYPE_CHECKING:
    import anthropic
    from anthropic.types import RawMessageStreamEvent

CONNECT_S = 10.0
SILENCE_S = 300.0
"""Between two events: a local server may load its model first. Others send pings."""

_LOOK_S = 0.1  # how often a stop is looked for


@dataclass(kw_only=True)
class Answer:
    """What has come so far. `stop` is the provider's reason, "" until it said one."""

    message_id: str = ""
    model: str = ""
    blocks: list[Block] = field(default_factory=list)
    stop: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    _inputs: dict[int, str] = field(default_factory=dict)  # tool input by block, as the text that came

    @property
    def calls(self) -> list[Block]:
        return [block for block in self.blocks if block.get("type") == "tool_use"]

    @property
    def text(self) -> str:
        return "\n".join(block["text"] for block in self.blocks if block.get("type") == "text").strip()

    @property
    def holds_anything(self) -> bool:
        return bool(self.text) or any(block.get("type") != "text" for block in self.blocks)


class ProviderFailed(Exception):
    """The model could not be asked, or its answer broke off. `again` says whether asking once more makes sense;
    `after` is the provider's own wish for a pause, in seconds."""

    def __init__(self, message: str, *, again: bool, after: float | None = None) -> None:
        super().__init__(message)
        self.again = again
        self.after = after


class Stopped(Exception):
    """A person stopped it."""


def model_for(wanted: str) -> str | None:
    """The model to ask for a conversation that names `wanted`: that one if it is configured, else the default; none without any."""
    if not settings.MODELS:
        return None
    return wanted if wanted in settings.MODELS else str(settings.MODELS[0])


def read_answer(
    body: bytes, *, into: Answer, stopped: Callable[[], bool], seen: Callable[[], None] = lambda: None
) -> None:
    """Send the body and fill the answer as it comes; `seen` is called after each event, and ten times a second in silence.

    Raises `ProviderFailed` or `Stopped`; what came until then stays in the answer.
    """
    events: queue.SimpleQueue[RawMessageStreamEvent | Exception | None] = queue.SimpleQueue()
    reading = _Reading(body, events)
    threading.Thread(target=reading.run, name="model stream", daemon=True).start()
    try:
        while True:
            if stopped():
                raise Stopped
            try:
                event = events.get(timeout=_LOOK_S)
            except queue.Empty:
                seen()
                continue
            if event is None:
                break
            if isinstance(event, Exception):
                raise _as_failure(event) from event
            _take(into, event)
            seen()
    finally:
        reading.end()
    if not into.stop:
        raise ProviderFailed("The answer broke off: the provider closed the connection before its end.", again=True)
    _finish(into)


class _Reading:
    """The thread that reads. `end` may be called from another one at any time."""

    def __init__(self, body: bytes, events: queue.SimpleQueue[RawMessageStreamEvent | Exception | None]) -> None:
        self._body = body
        self._events = events
        self._ended = threading.Event()
        self._stream: anthropic.Stream[RawMessageStreamEvent] | None = None

    def run(self) -> None:
        import anthropic
        from anthropic.types import Message, RawMessageStreamEvent

        try:
            stream = _client(settings.ANTHROPIC_BASE_URL, settings.ANTHROPIC_API_KEY).post(
                "/v1/messages",
                cast_to=Message,
                content=self._body,
                options={"headers": {"Content-Type": "application/json"}},
                stream=True,
                stream_cls=anthropic.Stream[RawMessageStreamEvent],
            )
            with stream:
                self._stream = stream
                for event in stream:
                    if self._ended.is_set():
                        return
                    self._events.put(event)
            self._events.put(None)
        except Exception as error:  # handed over: the thread that consumes decides
            if not self._ended.is_set():
                self._events.put(error)

    def end(self) -> None:
        self._ended.set()
        if self._stream is not None:
            with suppress(Exception):  # waking the read is a courtesy; the thread ends by itself after SILENCE_S
                network = self._stream.response.extensions["network_stream"]
                network.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


@cache
def _client(base_url: str, key: str) -> anthropic.Anthropic:
    import anthropic

    return anthropic.Anthropic(
        api_key=key or "none",  # local servers ask for none, but the SDK for one
        base_url=base_url or None,
        max_retries=0,
        timeout=anthropic.Timeout(SILENCE_S, connect=CONNECT_S),
    )


def _take(answer: Answer, event: RawMessageStreamEvent) -> None:
    """Fold one event in. What a server leaves out or invents is no error: servers differ."""
    if event.type == "message_start":
        answer.message_id, answer.model = event.message.id or "", event.message.model or ""
        _count(answer, event.message.usage)
    elif event.type == "content_block_start":
        answer.blocks.append(event.content_block.to_dict(exclude_none=True))
    elif event.type == "content_block_delta" and event.index < len(answer.blocks):
        block, delta = answer.blocks[event.index], event.delta
        if delta.type == "text_delta":
            block["text"] = block.get("text", "") + delta.text
        elif delta.type == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta.thinking
        elif delta.type == "signature_delta":
            block["signature"] = delta.signature
        elif delta.type == "input_json_delta":
            answer._inputs[event.index] = answer._inputs.get(event.index, "") + delta.partial_json
    elif event.type == "message_delta":
        answer.stop = event.delta.stop_reason or answer.stop
        _count(answer, event.usage)


def _count(answer: Answer, usage: Any) -> None:
    """Counts are cumulative; a later one that is missing leaves the earlier."""
    names = {
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "cache_read_input_tokens": "cache_read_tokens",
        "cache_creation_input_tokens": "cache_write_tokens",
    }
    for theirs, ours in names.items():
        value = getattr(usage, theirs, None)
        if isinstance(value, int):
            setattr(answer, ours, max(value, getattr(answer, ours)))


def _finish(answer: Answer) -> None:
    """Tool inputs are read once they are whole. A call that was cut off is none: it is taken out, and `stop` says why."""
    for index, text in answer._inputs.items():
        try:
            found = json.loads(text) if text.strip() else {}
        except ValueError:
            found = None
        answer.blocks[index]["input"] = found
    answer.blocks = [
        block for block in answer.blocks if block.get("type") != "tool_use" or isinstance(block.get("input"), dict)
    ]


def _as_failure(error: Exception) -> ProviderFailed:
    import anthropic

    if isinstance(error, anthropic.APITimeoutError):
        return ProviderFailed("The provider did not answer in time.", again=True)
    if isinstance(error, anthropic.APIStatusError):
        again = error.status_code in {408, 409, 429} or error.status_code >= 500 or error.status_code == 200
        said = _said(error)
        return ProviderFailed(
            f"The provider answered {error.status_code}: {said}", again=again, after=_pause(error.response.headers)
        )
    if isinstance(error, anthropic.APIConnectionError):
        return ProviderFailed("The provider cannot be reached.", again=True)
    # httpx errors of a stream that broke, and a server that sends what is no JSON: it may go well the next time.
    return ProviderFailed(f"The answer broke off: {type(error).__name__}.", again=True)


def _said(error: anthropic.APIStatusError) -> str:
    body = error.body
    inner = body.get("error") if isinstance(body, dict) else None
    said = inner.get("message") if isinstance(inner, dict) else None
    return str(said or error.message)[:300]


def _pause(headers: Any) -> float | None:
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None

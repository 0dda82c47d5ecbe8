"""What an endpoint's chunks say and litellm's do not: signs of life, how the answer ended, refusals, and details."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from drone.model.errors import AnswerInterrupted
from shared.redaction import shortened

MOST_CHUNKS = 200_000
"""litellm keeps each until the answer ends, in 4 KB; a model writes at most 128,000 tokens at once."""
MOST_RAW = 400_000
"""Characters of a raw answer that are kept: those of an ordinary answer of 20,000 characters, in small pieces."""
CUT = "cut off after 400,000 characters"

_REASONS = {
    "stop": "stop end_turn stop_sequence complete completed end eos eos_token normal",
    "tool_calls": "tool_calls tool_call tool_use function_call",
    "length": "length max_tokens max_output_tokens model_length max_length token_limit compaction"
    " model_context_window_exceeded",
    "content_filter": "content_filter content_filtered refusal sensitive guardrail_intervened error_toxic"
    " safety recitation language other blocklist prohibited_content spii escalation no_image"
    " image_safety image_prohibited_content image_recitation image_other",
}
_REASON_OF: Mapping[str, str] = {word: reason for reason, words in _REASONS.items() for word in words.split()}
"""How models end their answers: the words of OpenAI, Anthropic, Gemini, Bedrock, Cohere, Mistral, Ollama, Zhipu, Baidu,
vLLM and text-generation-inference, in lower case. The words of failed endpoints are missing, such as `error`, `abort`,
`network_error`, `insufficient_system_resource` and `malformed_function_call`; litellm takes these, and any unknown one,
for a `stop` (https://github.com/BerriAI/litellm/pull/22138).
"""


def reason_of(word: str) -> str:
    """Return a model's reason to end its answer in OpenAI's words; "" if it is not known to be the model's."""
    return _REASON_OF.get(word.lower(), "")


class RawChunks:
    """Listens to the chunks of one answer: `note` gets them before litellm, or `listen` gets what litellm reads."""

    def __init__(self, *, known: bool = True) -> None:
        self.known = known
        """Whether the protocol is one that is read here; chat completions always are."""
        self.heard = 0
        """How many chunks or lines there were, also of those that litellm does not pass on, such as pings."""
        self.read_here = False
        """Whether each chunk is noted before litellm reads it, so that nothing that litellm says is needed."""
        self.done = False
        """Whether `[DONE]` was read."""
        self.problem = ""
        """Why the answer cannot be used, if that was noticed while it was read."""
        self.refusal = ""
        """Why the model refused to answer, in its own words."""
        self.lines: list[str] = []
        """The chunks as they came, each as JSON."""
        self.is_cut = False
        """Whether there were more."""
        self._length = self._chunks = 0
        self.details: list[Any] = []
        """OpenRouter's `reasoning_details`, piece by piece: litellm drops a chunk that contains nothing else."""
        self._word = ""
        self._went_on = False

    @property
    def reason(self) -> str:
        """Why the model ended the answer, in OpenAI's words; "" if it did not, or something else ended it."""
        # Some endpoints name a reason in every chunk, so that it does not tell the end.
        unknown = self.problem or (self._went_on and not self.done)
        return "" if unknown else reason_of(self._word)

    def finish_reason(self, litellms: str | None) -> str:
        """Return why the model ended the answer, in OpenAI's words. `litellms`: the reason that litellm names.

        Raises AnswerInterrupted if it did not: the answer may lack its end.
        """
        if not self._word and not self.read_here:
            self._word = litellms or ""
        if self.reason:
            return self.reason
        if self.problem or not self._word or reason_of(self._word):
            raise AnswerInterrupted(self.problem or "it has no finish reason, or was not an answer stream")
        raise AnswerInterrupted(f"its finish reason is `{shortened(' '.join(self._word.split()), 60)}`")

    def listen(self, stream: Any) -> None:
        """Note the chunks of litellm's stream, unless they are noted before litellm reads them."""
        if stream.completion_stream is None:
            # The connection is opened only when the stream is read.
            make_call = stream.make_call
            stream.make_call = lambda **settings: self._listening(make_call(**settings))
        else:
            stream.completion_stream = self._listening(stream.completion_stream)

    def _listening(self, source: Any) -> Any:
        """The same source, which tells each chunk before it parses it, or else each parsed one."""
        parse = getattr(source, "chunk_parser", None)
        if parse is None:
            return self._passing(source)

        def parsed(chunk: dict[str, Any]) -> Any:
            if not self.read_here:
                self.note(chunk)
            return parse(chunk)

        source.chunk_parser = parsed
        return source

    def _passing(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """The same chunks, which are objects already."""
        for chunk in chunks:
            if self.read_here:
                yield chunk
                continue
            for choice in (getattr(chunk, "choices", None) or ())[:1]:
                self._finish(getattr(choice, "finish_reason", None))
                self._note_delta({name: getattr(choice.delta, name, None) for name in ("refusal", "reasoning_details")})
            # Gets pydantic's models from the SDKs of providers, and plain objects from some adapters of litellm.
            self._keep(chunk.model_dump_json(exclude_unset=True) if hasattr(chunk, "model_dump_json") else str(chunk))
            yield chunk

    def _keep(self, line: str) -> None:
        self._chunks += 1
        if self._chunks > MOST_CHUNKS:
            self.problem = f"it has more than {MOST_CHUNKS:,} pieces"
            raise AnswerInterrupted(self.problem)
        if self.is_cut or self._length + len(line) > MOST_RAW:
            self.is_cut = True
            return
        self._length += len(line)
        self.lines.append(line)

    def note(self, chunk: dict[str, Any]) -> None:
        """Note a chunk as the endpoint sent it, in the form of any protocol."""
        self.heard += 1
        self._keep(json.dumps(chunk, ensure_ascii=False, default=str))
        if chunk.get("type") == "response.refusal.delta":
            self.refusal += str(chunk.get("delta") or "")
        if "choices" in chunk:
            choice = choice_of(chunk)
            delta = _object(choice.get("delta")) or _object(choice.get("message"))
            if self._word and any(delta.get(part) for part in ("content", "tool_calls")):
                self._went_on = True
            self._note_delta(delta)
            self._finish(choice.get("finish_reason"))
        elif "candidates" in chunk or "promptFeedback" in chunk:
            self._note_candidates(chunk)
        else:
            self._finish(_finish_of(chunk))

    def _finish(self, word: Any) -> None:
        """Note a finish reason. One that is not the model's stays."""
        word = word if isinstance(word, str) and word != "null" else ""
        if word and (not self._word or reason_of(self._word)):
            self._word = word

    def _note_candidates(self, chunk: dict[str, Any]) -> None:
        """Gemini's form of a chunk."""
        self._finish("safety" if _object(chunk.get("promptFeedback")).get("blockReason") else None)
        for candidate in map(_object, chunk.get("candidates") or ()):
            self._finish(candidate.get("finishReason"))
            for part in map(_object, _object(candidate.get("content")).get("parts") or ()):
                # litellm takes a call without arguments for an error.
                _object(part.get("functionCall")).setdefault("args", {})

    def _note_delta(self, delta: dict[str, Any]) -> None:
        refusal, details = delta.get("refusal"), delta.get("reasoning_details")
        self.refusal += refusal if isinstance(refusal, str) else ""
        self.details += details if isinstance(details, list) else ()


def choice_of(chunk: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choice of a chunk of chat completions that is the answer; an empty one if it has none.

    Raises AnswerInterrupted for choices that cannot be understood.
    """
    choices = chunk.get("choices") or ()
    if not isinstance(choices, list | tuple):
        raise AnswerInterrupted("it has choices that are no list")
    of_answer = (each for each in choices if isinstance(each, dict) and each.get("index") in (None, 0))
    return next(of_answer, {})


def _finish_of(chunk: Mapping[str, Any]) -> Any:
    """The finish reason of a chunk of Anthropic, Bedrock, Ollama, Cohere, or OpenAI's Responses API."""
    if chunk.get("type") == "response.completed":
        return "completed"
    if chunk.get("type") == "response.incomplete":
        return _object(_object(chunk.get("response")).get("incomplete_details")).get("reason")
    if "done" in chunk:
        return chunk["done"] and (chunk.get("done_reason") or "stop")
    delta = _object(chunk.get("delta"))
    return chunk.get("stopReason") or delta.get("stop_reason") or delta.get("finish_reason")


def _object(value: Any) -> dict[str, Any]:
    """A JSON object; an empty one in the place of anything else."""
    return value if isinstance(value, dict) else {}

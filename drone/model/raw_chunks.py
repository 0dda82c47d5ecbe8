"""What an endpoint's chunks say and litellm's do not: signs of life, Gemini's end, OpenAI's refusals, and details."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MOST_RAW = 400_000
"""Characters of a raw answer that are kept: those of an ordinary answer of 20,000 characters, in small pieces."""
CUT = "cut off after 400,000 characters"


class RawChunks:
    """Listens to the chunks of one stream before, or while, litellm converts them."""

    def __init__(self, stream: Any) -> None:
        self.ended = True
        """Whether the answer is complete, where litellm does not tell: it names a reason in each of Gemini's chunks."""
        self._finished = False
        self.heard = 0
        """How many chunks there were, also of those that litellm does not pass on, such as pings."""
        self.refusal = ""
        """Why the model refused to answer, in its own words."""
        self.lines: list[str] = []
        """The chunks as they came, each as JSON."""
        self.is_cut = False
        """Whether there were more."""
        self._length = 0
        self.details: list[Any] = []
        """OpenRouter's `reasoning_details`, piece by piece: litellm drops a chunk that contains nothing else."""
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
            self._note(chunk)
            return parse(chunk)

        source.chunk_parser = parsed
        return source

    def _passing(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """The same chunks, which are objects already."""
        for chunk in chunks:
            for choice in (getattr(chunk, "choices", None) or ())[:1]:
                self._note_delta({name: getattr(choice.delta, name, None) for name in ("refusal", "reasoning_details")})
            # Gets pydantic's models from the SDKs of providers, and plain objects from some adapters of litellm.
            self._keep(chunk.model_dump_json(exclude_unset=True) if hasattr(chunk, "model_dump_json") else str(chunk))
            yield chunk

    def _keep(self, line: str) -> None:
        if self.is_cut or self._length + len(line) > MOST_RAW:
            self.is_cut = True
            return
        self._length += len(line)
        self.lines.append(line)

    def _note(self, chunk: dict[str, Any]) -> None:
        self.heard += 1
        self._keep(json.dumps(chunk, ensure_ascii=False, default=str))
        if chunk.get("type") == "response.refusal.delta":
            self.refusal += str(chunk.get("delta") or "")
        for choice in (chunk.get("choices") or ())[:1]:
            self._note_delta(choice.get("delta") or {})
        if "candidates" in chunk or "promptFeedback" in chunk:
            self._note_candidates(chunk)

    def _note_candidates(self, chunk: dict[str, Any]) -> None:
        """Gemini's form of a chunk."""
        candidates = chunk.get("candidates") or ()
        blocked = (chunk.get("promptFeedback") or {}).get("blockReason")
        if blocked or any(candidate.get("finishReason") for candidate in candidates):
            self._finished = True
        self.ended = self._finished
        for candidate in candidates:
            for part in (candidate.get("content") or {}).get("parts") or ():
                # litellm takes a call without arguments for an error.
                part.get("functionCall", {}).setdefault("args", {})

    def _note_delta(self, delta: dict[str, Any]) -> None:
        self.refusal += delta.get("refusal") or ""
        self.details += delta.get("reasoning_details") or ()

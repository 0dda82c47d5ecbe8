"""Ollama's chat API.

Written from "API: generate a chat completion" (https://github.com/ollama/ollama/blob/main/docs/api.md) and "Thinking"
(https://docs.ollama.com/capabilities/thinking). One JSON object on each line.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from drone.model.errors import ErrorClass
from tests.support.endpoints import Doc, Said, halves, refused, sent_in_pieces
from tests.support.protocols import openai_chat as chat
from tests.support.protocols.spoken import Answer, Counted, Refusal, Spoken, broken_by

KIND = "application/x-ndjson"


def line(message: Doc, **more: Any) -> bytes:
    head = {"model": "qwen3", "created_at": "2026-11-25T20:00:00.000000Z"}
    document = {**head, "message": {"role": "assistant", "content": "", **message}, "done": False, **more}
    return json.dumps(document).encode() + b"\n"


def usage_of(counted: Counted) -> Doc:
    times = {"total_duration": 5_000_000, "load_duration": 1_000, "prompt_eval_duration": 9_000, "eval_duration": 9_000}
    return {**times, "prompt_eval_count": counted.asked, "eval_count": counted.answered}


def answer(said: Answer) -> Said:
    """Calls come whole, one on each line."""
    lines = [line({"thinking": half}) for half in halves(said.thinking) if half]
    lines += [line({"content": half}) for half in halves(said.text) if half]
    for call in said.calls:
        function = {"name": call.name, "arguments": call.arguments}
        lines.append(line({"tool_calls": [{"id": call.id, "function": function}]}))
    used = usage_of(said.usage) if said.usage else {}
    return sent_in_pieces([*lines, line({}, done=True, done_reason="stop", **used)], KIND)


def error(status: int, message: str) -> Said:
    return refused(status, {"error": message})


_E = ErrorClass
_HALF = answer(Answer("Let me look at it."))
_CRASHED = "an error was encountered while running the model: unexpected EOF"

OLLAMA = Spoken(
    name="ollama",
    model="ollama_chat/qwen3",
    path="",
    answer=answer,
    parts=partial(chat.parts, thinking="thinking"),
    prefix=chat.prefix,
    caches=False,
    own_ids=False,
    counts_thought=False,
    refusals=(
        Refusal(error(404, "model 'qwen3' not found"), _E.MODEL_NOT_FOUND),
        Refusal(error(503, "server busy, please try again. maximum pending requests exceeded"), _E.OVERLOADED),
    ),
    breaks=(Refusal(broken_by(_HALF, 1, json.dumps({"error": _CRASHED}).encode() + b"\n"), _E.SERVER),),
)

"""Conversation formats of model families: one table by name, and the changes after a provider's refusal.

How thinking is sent back: Anthropic checks its signed blocks (https://docs.anthropic.com, extended thinking),
OpenRouter its `reasoning_details`, OpenAI's Responses API its encrypted items, and Gemini the signatures of its calls;
DeepSeek, Moonshot, GLM, MiniMax and Ollama expect `reasoning_content` within a loop of tool calls; all others get it
before the content (G-007).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

from drone.model.errors import ErrorClass, Failure
from shared.messages import Message

Thinking = Literal["tags", "reasoning", "filled", "blocks", "details", "items", "signatures"]
"""`<thinking>` in the content; `reasoning_content`; the same on every message; signed blocks; OpenRouter's details;
items of the Responses API; `reasoning_content` and Gemini's signatures."""
SIGNATURE = "thought_signature"
"""The type of a block with one of Gemini's signatures: of the call at position `call`, or of the text without one."""
SIGNED_ID = "__thought__"
"""In litellm's ids, separates the id of a call from Gemini's signature of it."""


@dataclass(frozen=True)
class Ids:
    """Which call ids an endpoint accepts."""

    least: int
    most: int
    invalid: re.Pattern[str]

    def accepted(self, call_id: str) -> str:
        """Return the id, or one derived from it if the endpoint would refuse it: the same one every time."""
        if self.least <= len(call_id) <= self.most and not self.invalid.search(call_id):
            return call_id
        return sha256(call_id.encode()).hexdigest()[: self.most]


_FORTY = Ids(1, 40, re.compile(r"[^a-zA-Z0-9_-]"))
_NINE = Ids(9, 9, re.compile(r"[^a-zA-Z0-9]"))
"""Mistral: "must be a-z, A-Z, 0-9, with a length of 9"."""


@dataclass(frozen=True)
class Family:
    """The request format for a model. A refusal may show that it needs another one, which then stays for the run."""

    thinking: Thinking = "tags"
    markers: bool = False
    """Whether requests contain prompt cache markers."""
    text: bool = False
    """Whether tools are called in text."""
    leave_out: frozenset[str] = frozenset()
    """Provider parameters that are not sent."""
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The parameter that limits the length of an answer."""
    ids: Ids | None = None
    """A restriction of call ids: calls of another provider's model, made before a fallback, have others. None: none."""
    conceded: frozenset[Concession] = frozenset()
    """The changes made so far, so that none is made twice."""


_CLAUDE = r"(?:bedrock/.*|(?:anthropic/|vertex_ai(?:_beta)?/|azure_ai/)?(?:[\w-]+\.)*)claude-"
_THINKERS = (
    r"kimi-(?:k2-thinking|k[2-9]\.\d)|minimax-m[2-9]|glm-(?:4\.[5-9]|[5-9])|deepseek-(?:reasoner|v3\.[2-9]|v[4-9])"
)

_REASONERS = r"(?:gpt-[5-9]|o\d\b|codex)"

_FAMILIES: tuple[tuple[re.Pattern[str], Family], ...] = tuple(
    (re.compile(rf"\A(?:{pattern})", re.IGNORECASE), family)
    for pattern, family in (
        (r"openrouter/.*claude-", Family("details", markers=True)),
        (r"openrouter/", Family("details")),
        # Other models that speak the Messages API sign their thinking, too.
        (rf"anthropic/|{_CLAUDE}", Family("blocks", markers=True)),
        (r"(?:gemini|vertex_ai(?:_beta)?)/.*gemini", Family("signatures")),
        (rf"(?:openai|azure)/(?:responses/|{_REASONERS})", Family("items", ids=_FORTY)),
        (r"(?:openai|azure)/", Family(ids=_FORTY)),
        (rf"hosted_vllm/(?:.*/)?{_REASONERS}", Family(limit="max_completion_tokens", ids=_FORTY)),
        (r"(?:deepseek|moonshot|zai|ollama|ollama_chat)/", Family("reasoning")),
        (r"(?:.*/)?(?:\w*mistral|mixtral|magistral|devstral|codestral)", Family(ids=_NINE)),
        (rf"(?:.*/)?(?:{_THINKERS})", Family("reasoning")),
    )
)
"""By the name passed to litellm; the first pattern that matches its beginning applies."""

_VENDORS = {"anthropic": "anthropic-", "google": "google-", "openai": "openai-", "x-ai": "xai-"}
"""OpenRouter's vendor names, and the prefix of the `format` of details that the vendor understands."""


def family_of(model: str) -> Family:
    """Return the family of a model by its litellm name, for example `anthropic/claude-x`."""
    return next((family for pattern, family in _FAMILIES if pattern.search(model)), Family())


def own_blocks(message: Message, family: Family, model: str) -> bool:
    """Whether a message contains thinking in the form that this family produces."""
    blocks = message.thinking_blocks
    if blocks and family.thinking == "blocks":
        return all(_signed(block) for block in blocks)
    if blocks and family.thinking == "details":
        return _understood(blocks, model)
    if blocks and family.thinking in _KINDS:
        return all(block.get("type") == _KINDS[family.thinking] for block in blocks)
    return False


_KINDS: Mapping[Thinking, str] = {"items": "reasoning", "signatures": SIGNATURE}


def _signed(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "redacted_thinking" or bool(block.get("type") == "thinking" and block.get("signature"))


def _understood(details: tuple[dict[str, Any], ...], model: str) -> bool:
    if not all(str(detail.get("type")).startswith("reasoning.") for detail in details):
        return False
    vendor = model.removeprefix("openrouter/").partition("/")[0].lstrip("~")
    known = tuple(_VENDORS.values())
    formats = [str(detail.get("format") or "") for detail in details]
    if wanted := _VENDORS.get(vendor):
        return all(each.startswith(wanted) or not each.startswith(known) for each in formats)
    return not any(each.startswith(known) for each in formats)


@dataclass(frozen=True, eq=False)
class Concession:
    """A change of the request format after a provider refused it."""

    pattern: re.Pattern[str]
    change: Mapping[str, Any]
    said: str

    def applied(self, family: Family) -> Family:
        left_out = family.leave_out | self.change.get("leave_out", frozenset())
        return replace(family, **{**self.change, "leave_out": left_out}, conceded=family.conceded | {self})


_TOOLS = r"tools?\b|tool.?(?:use|calls?|calling|choice)|function.?call"
_CONCESSIONS = tuple(
    Concession(re.compile(pattern, re.IGNORECASE | re.DOTALL), change, said)
    for pattern, change, said in (
        (
            rf"(?:does ?n.t|does not|cannot|not|that) support.{{0,40}}(?:{_TOOLS})"
            rf"|(?:{_TOOLS}).{{0,60}}(?:not (?:supported|enabled|available|permitted)|unsupported|n.t supported)"
            r"|tool choice requires|tools param requires|'body', 'tools'",
            {"text": True},
            "It does not support tools: from now on they are called in text.",
        ),
        (
            r"missing.{0,20}reasoning_content|reasoning_content.{0,80}(?:passed back|missing|required)",
            {"thinking": "filled"},
            "From now on its reasoning is sent back with every call.",
        ),
        (
            r"reasoning_content|reasoning_details",
            {"thinking": "tags"},
            "From now on thinking is sent back as text.",
        ),
        (
            r"temperature.{0,80}thinking|thinking.{0,80}temperature",
            {"leave_out": frozenset({"temperature", "top_p", "top_k"})},
            "From now on its temperature is not set, because it thinks.",
        ),
        (
            r"expected `?thinking|thinking.{0,80}(?:block|signature)|signature.{0,80}thinking",
            {"thinking": "tags", "leave_out": frozenset({"thinking", "reasoning_effort"})},
            "From now on it is not asked to think, and thinking is sent back as text.",
        ),
        (
            r"reasoning.?effort|budget_tokens|thinking.{0,60}(?:not supported|unsupported|is invalid)"
            r"|only works in thinking mode",
            {"leave_out": frozenset({"thinking", "reasoning_effort"})},
            "It refuses the thinking level: from now on none is sent.",
        ),
        (
            r"encrypted.content|'rs_\w+' of type 'reasoning'|reasoning item",
            {"thinking": "tags"},
            "From now on thinking is sent back as text.",
        ),
        (
            r"max_tokens.{0,120}max_completion_tokens",
            {"limit": "max_completion_tokens"},
            "From now on the length of an answer is limited by max_completion_tokens.",
        ),
        (
            r"tool call id was.{0,200}length of 9",
            {"ids": _NINE},
            "From now on calls are sent back with ids of nine characters.",
        ),
        (r"cache_control", {"markers": False}, "From now on nothing is marked for its prompt cache."),
    )
)
REFUSALS = frozenset({ErrorClass.FORMAT, ErrorClass.MODEL_NOT_FOUND, ErrorClass.SERVER, ErrorClass.UNKNOWN})
"""Classes of failures that a change of the request may fix."""


def refuses_tools(error_class: ErrorClass, detail: str) -> bool:
    """Whether an endpoint's refusal means that tools have to be called in text."""
    changed = conceded(Family(), Failure(error_class, detail), text=True)
    return changed is not None and changed[0].text


def conceded(family: Family, failure: Failure, *, text: bool) -> tuple[Family, str] | None:
    """Return the changed family after a refusal, with a sentence about it; None if there is nothing left to change.

    `text`: whether tools may be called in text. Each change is made at most once, so that retries end.
    """
    if failure.error_class not in REFUSALS:
        return None
    for each in _CONCESSIONS:
        if each in family.conceded or ("text" in each.change and not text):
            continue
        if each.pattern.search(failure.detail):
            return each.applied(family), each.said
    return None

"""What the GenAI semantic conventions of OpenTelemetry say about a model call; no text of it."""

from __future__ import annotations

from control_plane.telemetry.tracing.spans import AttributeValue
from shared.events import Usage

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "cohere_chat": "cohere",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""LiteLLM's names of providers that the conventions call otherwise."""
_LONGEST = 200


def chat_name(model: str) -> str:
    """The name of the span of a call, which the conventions give."""
    return f"chat {_requested(model)}"


def chat_attributes(model: str, session_id: str, usage: Usage) -> dict[str, AttributeValue | None]:
    """`model` as LiteLLM names it: its provider and, after a slash, the name that the provider knows."""
    provider, slash, _ = model.partition("/")
    return {
        "gen_ai.operation.name": "chat",
        # Without a prefix, LiteLLM finds the provider by its own list.
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider)[:_LONGEST] if slash else "litellm",
        "gen_ai.request.model": _requested(model),
        "gen_ai.conversation.id": session_id,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        "gen_ai.usage.reasoning.output_tokens": usage.thinking_tokens or None,
        "dronefleet.cost_usd": usage.cost_usd,
    }


def _requested(model: str) -> str:
    return (model.partition("/")[2] or model)[:_LONGEST]

"""The way in which one provider is asked: by which name, over which path, and in which words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from drone.agent.values import ToolSpec
from drone.model.actions import acted
from drone.model.conversion import MARKER, WireConversation, tools_to_wire
from drone.model.errors import Failure
from drone.model.litellm_import import litellm
from drone.model.model_families import conceded, family_of
from drone.model.prices import listed
from drone.model.spoken_calls import spoken_call
from shared.messages import Message
from shared.work_order import OrderProvider

WINDOW = 131_072
"""Tokens, where nobody knows better (G-034)."""

_OWN_PATHS = frozenset({"anthropic", "openrouter", "deepseek", "mistral"})
"""Providers whose calls litellm makes itself, so that they take an HTTP client of ours, which can be closed."""


class Route:
    """How a provider is asked for the rest of a run, unless it shows that it wants to be asked otherwise."""

    def __init__(self, provider: OrderProvider) -> None:
        self.provider = provider
        self.model, self.own_client = _route(provider)
        # An endpoint of one's own may serve anything by a name that the list happens to have.
        known = {} if provider.api_base else listed(provider.model)
        no_tools = known.get("supports_function_calling") is False
        text = provider.protocol == "text" or (provider.protocol == "auto" and no_tools)
        self.family = replace(family_of(self.model), text=text)
        self._wire: tuple[Sequence[ToolSpec], WireConversation] | None = None

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        """Return what is asked, with the provider's own parameters."""
        params = {name: value for name, value in self.provider.params.items() if name not in self.family.leave_out}
        offered = [] if self.family.text else tools_to_wire(tools)
        if offered and self.family.markers and messages[0].role != "system":
            offered[-1]["cache_control"] = dict(MARKER)
        return {**params, "messages": self._converted(tools).documents(messages), "tools": offered or None}

    def read(
        self, message: Message, asked: Sequence[Message], tools: Sequence[ToolSpec], *, cut: bool
    ) -> tuple[Message, str]:
        """Return an answer with the calls that it makes, and why it cannot be acted on, if so.

        `cut`: it reached the length limit.
        """
        if self.family.text and tools:
            number = sum(each.role == "assistant" for each in asked) + 1
            return acted(message, tools, number, cut=cut)
        return message, "" if message.tool_calls else spoken_call(message.content, tools)

    def concede(self, failure: Failure) -> str:
        """Ask in another way from here on, if that is what a refusal is about; returns what was changed, or nothing."""
        changed = conceded(self.family, failure, text=self.provider.protocol == "auto")
        if changed is None:
            return ""
        self.family, said = changed
        self._wire = None
        return said

    def _converted(self, tools: Sequence[ToolSpec]) -> WireConversation:
        if self._wire is None or self._wire[0] != list(tools):
            self._wire = list(tools), WireConversation(self.family, self.model, tools)
        return self._wire[1]


def window_of(provider: OrderProvider) -> int:
    """Tokens that question and answer may have together: the provider's own word, litellm's list, or 131,072."""
    return provider.context_window or listed(provider.model).get("max_input_tokens") or WINDOW


def _route(provider: OrderProvider) -> tuple[str, bool]:
    """Name the model for litellm, and say whether the call takes an HTTP client of ours.

    Through `openai/` litellm's SDK transforms every past message at each call, so that a step costs more the longer
    the run is; an endpoint with an address of its own speaks the same protocol and takes the path that does not.
    """
    prefix, _, rest = provider.model.partition("/")
    if prefix in _OWN_PATHS:
        return provider.model, True
    if not provider.api_base:
        return provider.model, False
    if prefix in {"openai", "custom_openai", "hosted_vllm"} and rest:
        return f"hosted_vllm/{rest}", True
    if prefix not in litellm().provider_list:
        return f"hosted_vllm/{provider.model}", True
    return provider.model, False

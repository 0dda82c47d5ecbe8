"""How one provider is called: model name, request path and request format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from drone.agent.values import ToolSpec
from drone.model.actions import acted
from drone.model.conversion import MARKER, WireConversation, tools_to_wire
from drone.model.errors import Failure, leave_out
from drone.model.litellm_import import litellm
from drone.model.model_families import REFUSALS, conceded, family_of
from drone.model.prices import listed
from drone.model.spoken_calls import spoken_call
from drone.model.thinking import PARAMS, effort_of
from shared.messages import Message
from shared.work_order import CREDENTIAL_PARAMS, OWN_PARAMS, OrderProvider

WINDOW = 131_072
"""Default in tokens, if the window is unknown (G-034)."""

RESPONSES = "openai/responses/"
"""Begins litellm's name of a model that is called with OpenAI's Responses API."""
_STATELESS = {"store": False, "include": ["reasoning.encrypted_content"]}
"""The endpoint keeps nothing, so that its reasoning goes back whole, as in chat completions."""
_OLLAMA = ("ollama/", "ollama_chat/")
_OWN_PATHS = frozenset(
    {
        *("anthropic", "bedrock", "cometapi", "compactifai", "deepseek", "fireworks_ai", "gemini", "groq", "minimax"),
        *("mistral", "ollama", "ollama_chat", "openrouter", "ovhcloud", "together_ai", "xai"),
    }
)
"""Providers that litellm calls itself, so that they accept our HTTP client, which can be closed and reads the bytes."""


class Route:
    """How a provider is called for the rest of a run, unless a refusal changes it."""

    def __init__(self, provider: OrderProvider) -> None:
        self.provider = provider
        self.model, self.own_client = _route(provider)
        self.family = replace(family_of(self.model), text=calls_in_text(provider))
        self.effort = effort_of(provider, self.model)
        self._wire: tuple[Sequence[ToolSpec], WireConversation] | None = None
        self._refused: set[str] = set()
        """Tools that the provider refused."""

    def request(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], max_tokens: int | None = None
    ) -> dict[str, Any]:
        """Return the request, with the provider's parameters; `max_tokens` replaces theirs."""
        params = {name: value for name, value in self._params().items() if name not in self.family.leave_out}
        offered = tools_to_wire(self._offered(tools))
        if offered and self.family.markers and messages[0].role != "system":
            offered[-1]["cache_control"] = dict(MARKER)
        if max_tokens is not None and "max_tokens" not in self.family.leave_out:
            own = "max_completion_tokens" if "max_completion_tokens" in params else self.family.limit
            params.pop("max_tokens", None)
            params[own] = max_tokens
        if self.model.startswith(RESPONSES):
            params = {**_STATELESS, **params}
        if self.model.startswith(_OLLAMA) and self.provider.context_window:
            # Otherwise it cuts off what exceeds its own setting, without a word.
            params = {"num_ctx": self.provider.context_window, **params}
        return {**params, "messages": self._converted(tools).documents(messages), "tools": offered or None}

    def read(
        self, message: Message, asked: Sequence[Message], tools: Sequence[ToolSpec], *, cut: bool
    ) -> tuple[Message, str]:
        """Return an answer with its calls, and why it cannot be acted on; the reason is empty if it can.

        `cut`: it reached the length limit.
        """
        if self.family.text and tools:
            number = sum(each.role == "assistant" for each in asked) + 1
            return acted(message, tools, number, cut=cut)
        return message, "" if message.tool_calls else spoken_call(message.content, asked, tools)

    def concede(self, failure: Failure, tools: Sequence[ToolSpec]) -> str:
        """Change the request if the refusal of one with these tools calls for it.

        Returns a sentence about the change, or '' if there is none.
        """
        offered = [tool.name for tool in self._offered(tools)]
        if refused := refused_tools(failure, offered):
            self._refused.update(refused)
            help_with = "; ".join(filter(None, map(leave_out, refused)))
            said = f"From now on it is asked without {', '.join(refused)}"
            return f"{said} (next: {help_with})." if help_with else f"{said}."
        if changed := conceded(self.family, failure, text=self.provider.protocol == "auto"):
            self.family, said = changed
            self._wire = None
            return said
        if refused := perhaps_refused(failure, offered):
            self._refused.update(refused)
            return (
                "It refuses the schema of a tool and does not say of which: from now on it is asked without the "
                f"{len(refused)} of MCP servers (next: leave out the one that it refuses, with `tools` in mcp.json)."
            )
        return ""

    def _offered(self, tools: Sequence[ToolSpec]) -> list[ToolSpec]:
        """The tools that a request names."""
        return [] if self.family.text else [tool for tool in tools if tool.name not in self._refused]

    def _params(self) -> dict[str, Any]:
        """The provider's permitted parameters. The thinking level is a setting of its own, which replaces them."""
        params = permitted(self.provider.params)
        if self.effort.value is None:
            return params
        others = {name: value for name, value in params.items() if name not in PARAMS}
        return {**others, "reasoning_effort": self.effort.value}

    def _converted(self, tools: Sequence[ToolSpec]) -> WireConversation:
        if self._wire is None or self._wire[0] != list(tools):
            self._wire = list(tools), WireConversation(self.family, self.model, tools)
        return self._wire[1]


def permitted(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters without those that could send a credential of the drone where its owner does not allow it.

    The control plane refuses them, but the drone does not depend on it.
    """
    kept = {name: value for name, value in params.items() if name not in OWN_PARAMS}
    if isinstance(body := kept.get("extra_body"), dict):
        # litellm takes some of its own parameters from there.
        kept["extra_body"] = {name: value for name, value in body.items() if name not in CREDENTIAL_PARAMS}
    return kept


def calls_in_text(provider: OrderProvider) -> bool:
    """Whether tools are called in text without asking the endpoint: as set, or since the model is known to need it."""
    # A custom endpoint may serve any model under a name that happens to be in the list.
    known = {} if provider.api_base else listed(provider.model)
    no_tools = known.get("supports_function_calling") is False
    return provider.protocol == "text" or (provider.protocol == "auto" and no_tools)


def window_of(provider: OrderProvider) -> int:
    """Maximum tokens of question and answer together: the provider's setting, litellm's list, or 131,072."""
    return provider.context_window or listed(provider.model).get("max_input_tokens") or WINDOW


def _wants_responses(model: str) -> bool:
    """Whether a model of OpenAI is called with the Responses API: as its name says, or since it has no other."""
    if not model.startswith("openai/"):
        return False
    return model.startswith(RESPONSES) or listed(model).get("mode") == "responses"


def _route(provider: OrderProvider) -> tuple[str, bool]:
    """Return the model's name for litellm, and whether the call accepts our HTTP client.

    With `openai/`, litellm's SDK transforms every past message at each call, so that a step costs more the longer the
    run is; a custom endpoint speaks the same protocol and uses a path that does not do this.
    """
    prefix, _, rest = provider.model.partition("/")
    if prefix in _OWN_PATHS:
        return provider.model, True
    if _wants_responses(provider.model):
        return RESPONSES + rest.removeprefix("responses/"), True
    if not provider.api_base:
        return provider.model, False
    if prefix in {"openai", "custom_openai", "hosted_vllm"} and rest:
        return f"hosted_vllm/{rest}", True
    if prefix not in litellm().provider_list:
        return f"hosted_vllm/{provider.model}", True
    return provider.model, False


# --- which tools an endpoint refused --------------------------------------------------------------
#
# Their schemas are their servers', and one of them must not cost the whole order. Endpoints name a tool by its name
# (OpenAI, DeepSeek, Groq, Vertex AI) or by its place in the request (Anthropic, Bedrock, Gemini, Mistral). Those that
# make a grammar of the schemas do not name it (llama.cpp, Ollama, vLLM).

_ABOUT_SCHEMAS = re.compile(r"schema|function.?declaration|\.parameters\b|\btools\b", re.IGNORECASE)
_UNNAMED = re.compile(r"schema|\bgrammar\b", re.IGNORECASE)
_NAMED = re.compile(
    # `function 'name'`, `tool "name"`, `name` functionDeclaration. Other quoted words are properties, which may well
    # have the name of another tool.
    r"\b(?:function|tool)s?\W{1,3}(?P<after>[\w-]+)|(?<![\w-])(?P<before>[\w-]++)\W{1,3}function.?declaration"
    r"|\b(?P<mcp>mcp__[\w-]+)",
    re.IGNORECASE,
)
_PLACES = tuple(
    # tools.3.custom, tools[3], 'tools', 3
    re.compile(rf"\b{name}(?:\[|\.|['\"],\s*)(\d+)", re.IGNORECASE)
    for name in (r"function_?declarations", "tools")
)


def refused_tools(failure: Failure, offered: Sequence[str]) -> tuple[str, ...]:
    """The tools that the endpoint names in its refusal of a request that offered these, in this order.

    Only the first one that is named: what follows may describe it. Empty if the refusal is about something else.
    """
    said = failure.detail
    # A mark for the prompt cache stands in a tool, and has an answer of its own.
    if failure.error_class not in REFUSALS or not _ABOUT_SCHEMAS.search(said) or "cache_control" in said:
        return ()
    named = (match["after"] or match["before"] or match["mcp"] for match in _NAMED.finditer(said))
    if name := next((name for name in named if name in offered), ""):
        return (name,)
    for place in _PLACES:
        found = {int(number) for number in place.findall(said)}
        if found and max(found) < len(offered):
            return tuple(offered[number] for number in sorted(found))
    return ()


def perhaps_refused(failure: Failure, offered: Sequence[str]) -> tuple[str, ...]:
    """Those of MCP servers among the offered tools, if a refusal is about the schema of a tool that it does not name.

    The drone's own tools have schemas that every endpoint takes.
    """
    if failure.error_class not in REFUSALS or not _UNNAMED.search(failure.detail):
        return ()
    return tuple(name for name in offered if name.startswith("mcp__"))

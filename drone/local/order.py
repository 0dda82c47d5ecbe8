"""The work order of `drone run`, built only from its command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drone.installation.policy import Policy
from drone.workspace import local_source
from shared.clock import SystemClock
from shared.errors import Invalid, Precondition
from shared.names import new_id
from shared.terminal.output import say
from shared.work_order import (
    OWN_PARAMS,
    Limits,
    Mode,
    OrderProject,
    OrderProvider,
    OrderSession,
    ThinkingLevel,
    WorkOrder,
)

HERE = "local"
"""Placeholder for the drone, the boot and other names that only a fleet assigns."""


@dataclass(frozen=True)
class LocalWishes:
    """Options from the command line."""

    prompt: str
    repo: str
    model: str
    api_base: str | None = None
    mode: Mode = "build"
    thinking: ThinkingLevel | None = None
    """None: the model's default."""
    max_iterations: int = 50
    cost_limit: float = 3.0
    max_run_seconds: float = 1800
    api_key_variable: str | None = None
    sandbox: str = "auto"
    context_window: int = 0
    """Tokens; 0: LiteLLM's value for the model."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Sent to the model unchanged: temperature, seed and so on."""


def order_of(wishes: LocalWishes, env: Mapping[str, str]) -> WorkOrder:
    """Return the order for these wishes; a repository on this machine is checked immediately.

    Raises Invalid, NotFound, Precondition or Forbidden if the run cannot begin.
    """
    if not wishes.prompt.strip():
        raise Invalid("the prompt is empty", code="E-PROMPT-EMPTY", next='drone run "Make the tests pass" --repo .')
    if not wishes.model.strip():
        raise Invalid("a model name is required", code="E-MODEL-NAME", next="--model openai/gpt-x")
    if own := sorted(OWN_PARAMS & wishes.params.keys()):
        raise Invalid(f"{', '.join(own)} cannot be given as a parameter", code="E-PARAM", next="use its own option")
    return WorkOrder(
        order_id=new_id(),
        run_id=new_id(),
        generation=1,
        drone_id=HERE,
        project=OrderProject(id=HERE, name=HERE, slug=HERE, git_url=_git_url(wishes.repo)),
        session=OrderSession(id=new_id(), name=HERE, mode=wishes.mode),
        provider=OrderProvider(
            name=HERE,
            model=wishes.model,
            api_base=wishes.api_base,
            api_key=_key(wishes.api_key_variable, env),
            context_window=wishes.context_window,
            thinking=wishes.thinking,
            params=dict(wishes.params),
        ),
        limits=Limits(
            max_iterations=wishes.max_iterations,
            cost_limit=wishes.cost_limit,
            max_run_seconds=wishes.max_run_seconds,
        ),
        prompt=wishes.prompt,
        submitted_at=SystemClock().now(),
    )


def _key(variable: str | None, env: Mapping[str, str]) -> str | None:
    if variable is None:
        return None
    key = env.get(variable, "").strip()
    if not key:
        raise Precondition(
            f"environment variable {variable} is empty or not set", code="E-KEY-VARIABLE", next=f"export {variable}=..."
        )
    return key


def _git_url(repo: str) -> str:
    """Return the URL for git to fetch from. Raises NotFound without a repository, Forbidden for a helper program."""
    source = local_source(repo)
    Policy().check_git_url(source.url, None)
    if source.notice:
        say(f"note: {source.notice}")
    return source.url

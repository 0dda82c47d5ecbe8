"""A provider's key on this drone: from the sealed order, or from a variable that never leaves the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drone.agent.protocols import Controls, Model, Recorder
from drone.installation.policy import Policy
from drone.model.permits import Permits
from drone.runs.limit_question import limit_question
from drone.runs.purse import Purse
from shared.budgets import Money
from shared.clock import Clock
from shared.errors import FleetFault, UnsuitableDrone
from shared.work_order import OrderProvider, WorkOrder


def with_keys(provider: OrderProvider, policy: Policy, environ: Mapping[str, str]) -> OrderProvider:
    """The provider and its fallbacks with their keys filled in from the drone's variables.

    Raises Forbidden if the owner's policy does not allow a variable to be sent there, UnsuitableDrone if it is not set.
    """
    fallbacks = tuple(with_keys(fallback, policy, environ) for fallback in provider.fallbacks)
    key = provider.api_key
    if provider.key_variable is not None:
        key = _from_variable(provider.key_variable, provider.api_base, policy, environ)
    return provider.model_copy(update={"api_key": key, "fallbacks": fallbacks})


def keys_of(provider: OrderProvider, environ: Mapping[str, str]) -> Iterator[str]:
    """Every secret that this provider or a fallback may use here, for redaction."""
    for each in (provider, *provider.fallbacks):
        if each.api_key:
            yield each.api_key
        if each.key_variable and environ.get(each.key_variable):
            yield environ[each.key_variable]


def litellm_model(  # noqa: PLR0913 - four of a run, three of its drone
    order: WorkOrder,
    recorder: Recorder,
    controls: Controls,
    *,
    clock: Clock,
    policy: Policy,
    environ: Mapping[str, str],
    purse: Purse | None = None,
    permits: Permits | None = None,
    set_key: str = "",
) -> Model:
    """The order's model, reached through LiteLLM. What its calls may cost is bounded by `purse`; without one, by the
    order's cost limit. `set_key` is the command that sets the key, if no control plane keeps it.

    Raises FleetFault if the library is unavailable, Forbidden if the owner limits what is spent and the price of the
    provider or a fallback is unknown, and the errors of `with_keys`.
    """
    try:
        from drone.model.litellm_model import LiteLLMModel
        from drone.model.prices import is_priced
        from drone.runs.run_meter import RunMeter
    except ImportError as error:
        raise FleetFault(
            "this drone cannot load its model library", code="E-LITELLM", why=str(error), next="drone doctor"
        ) from error
    provider = with_keys(order.provider, policy, environ)
    for each in (provider, *provider.fallbacks):
        if not policy.spend.allows_unpriced(each.api_base) and not is_priced(each.model):
            policy.check_unpriced(each.model, each.api_base)
    purse = purse or Purse(order.limits.cost_limit, 0.0, None, Money())
    meter = RunMeter(purse, recorder, controls, clock, limit_question(order, recorder, controls, clock))
    model = LiteLLMModel(provider, provider.api_key, order.limits, recorder, clock, controls, meter=meter)
    model.permits = permits or model.permits
    model.set_key = set_key
    return model


def _from_variable(variable: str, api_base: str | None, policy: Policy, environ: Mapping[str, str]) -> str:
    policy.check_key(variable, api_base)
    if value := environ.get(variable):
        return value
    raise UnsuitableDrone(
        f"environment variable {variable} is not set on this drone",
        code="E-KEY-MISSING",
        why="the provider takes its API key from it",
        next=f"on the drone: export {variable}=…, then drone start",
    )

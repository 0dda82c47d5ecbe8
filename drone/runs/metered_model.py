"""A model whose calls count towards what the drone's owner lets it spend in a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drone.agent.protocols import Model
from drone.agent.values import ModelResponse, OnDelta, ToolSpec
from drone.installation.policy import Policy
from drone.installation.spending import DaySpending
from shared.messages import Message


@dataclass(frozen=True)
class MeteredModel:
    """Every call of a run goes through it: those of the loop, of its children, of compaction and of services."""

    model: Model
    policy: Policy
    spending: DaySpending

    @property
    def window(self) -> int:
        return self.model.window

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> ModelResponse:
        """As the model answers; raises Forbidden instead once the day's money is spent.

        Runs that ask at the same moment may together spend more, by what these calls cost.
        """
        self.policy.check_spent(self.spending.today())
        answer = self.model.answer(messages, tools, on_delta)
        self.spending.add(answer.usage.cost_usd or 0.0)
        return answer

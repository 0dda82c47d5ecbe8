"""What a step of the loop costs beside a call of litellm alone: same endpoint, same history, same tools.

    python -m tests.bench.loop_cost [--calls 20] [--history 10 100 400]

The endpoint is the scripted model in a process of its own: it stands for a model that answers at once, so that what is
left is our cost. A *step* is everything that the loop does: build the request, stream, put the answer together, record
it, run the call, record its result.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drone.agent.agent import Agent
from drone.agent.alone import ECHO, EchoToolbox, KeptEvents, QuietControls
from drone.model.foreign import litellm
from drone.model.litellm_model import LiteLLMModel
from drone.model.wire import to_wire, tools_to_wire
from shared.clock import SystemClock
from shared.messages import Message, ToolCall
from shared.work_order import Limits, OrderProvider

_REPLY = {"text": "Let me look.", "tool_calls": [{"name": "echo", "arguments": {"text": "x" * 80}}], "repeat": True}
_NO_LIMITS = Limits(max_iterations=0, cost_limit=0, max_run_seconds=0)


@dataclass(frozen=True)
class Row:
    """Median milliseconds at one length of history, which is counted in steps of two messages each."""

    history: int
    sdk_ms: float
    """litellm alone through `openai/`, the way that a name with an address would take by default."""
    own_path_ms: float
    """litellm alone through its own HTTP path."""
    step_ms: float
    """A whole step of the loop."""

    @property
    def ratio(self) -> float:
        """A step beside the bare call on the same path."""
        return self.step_ms / self.own_path_ms

    def __str__(self) -> str:
        figures = f"{self.sdk_ms:7.1f} | {self.own_path_ms:8.1f} | {self.step_ms:8.1f} | {self.ratio:5.2f}"
        return f"| loop cost per step | {self.history:7} | {figures} |"


HEADER = """\
|                    | history | litellm `openai/`, ms | litellm own path, ms | our step, ms | our step / own path |
|--------------------|---------|---------|----------|----------|-------|"""


def measure(history: int, calls: int) -> Row:
    """Measure one row. The three are taken in turn, so that a busy machine slows all of them alike."""
    with _endpoint() as url, closing(_model(url)) as model:
        past = _history(history)
        kinds = [_alone("openai/scripted", url, past), _alone("hosted_vllm/scripted", url, past), _step(model, past)]
        rounds = [[_milliseconds(kind) for kind in kinds] for _ in range(calls + 3)][3:]
    sdk, own_path, step = (statistics.median(column) for column in zip(*rounds, strict=True))
    return Row(history, sdk, own_path, step)


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _alone(model: str, url: str, past: list[Message]) -> Callable[[], object]:
    request: dict[str, Any] = {"messages": to_wire(past), "tools": tools_to_wire([ECHO])}
    module = litellm()

    def call() -> object:
        more = {"stream": True, "stream_options": {"include_usage": True}}
        return list(module.completion(model=model, api_base=url, api_key="none", **request, **more))

    return call


def _step(model: LiteLLMModel, past: list[Message]) -> Callable[[], object]:
    def step() -> object:
        agent = Agent(model, EchoToolbox(), KeptEvents(), QuietControls(), _NO_LIMITS, SystemClock())
        agent.begin(past[0].content, past[1:-1], past[-1].content)
        return _milliseconds(agent.step)

    return step


def _model(url: str) -> LiteLLMModel:
    provider = OrderProvider(name="scripted", model="openai/scripted", api_base=url)
    return LiteLLMModel(provider, None, _NO_LIMITS, KeptEvents(), SystemClock(), QuietControls())


def _history(steps: int) -> list[Message]:
    """A system prompt, so many steps with a result of usual size, and a question."""
    messages = [Message(role="system", content="You are measured. " * 100)]
    for number in range(steps):
        call = ToolCall(id=f"call_{number}", name="echo", arguments=json.dumps({"text": "x" * 200}))
        messages.append(Message(role="assistant", content="Let me look.", tool_calls=(call,)))
        messages.append(Message(role="tool", tool_call_id=call.id, content="a line of output\n" * 60))
    return [*messages, Message(role="user", content="Go on.")]


@contextmanager
def _endpoint() -> Iterator[str]:
    """The scripted model in a process of its own, so that its work does not count as ours."""
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "script.json"
        script.write_text(json.dumps([_REPLY]))
        command = [sys.executable, "-m", "drone.model.scripted", "--script", str(script)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield process.stdout.readline().strip()
            finally:
                process.terminate()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What a step of the loop costs beside litellm alone.")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--history", type=int, nargs="+", default=[10, 100, 400])
    chosen = parser.parse_args()
    sys.stdout.write(f"{HEADER}\n")
    for history in chosen.history:
        sys.stdout.write(f"{measure(history, chosen.calls)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

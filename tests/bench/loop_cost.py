"""The cost of a step of the loop compared with a bare litellm call: same endpoint, same history, same tools.

The endpoint is the scripted model in a separate process: a model that answers immediately, so that only our own cost
remains. A *step* is everything that the loop does: build the request, stream, assemble the answer, record it, run the
call, record its result.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from drone.agent.agent import Agent
from drone.agent.budget import RunBudget
from drone.agent.compaction.window_compaction import WindowCompaction
from drone.agent.in_memory import ECHO, EchoToolbox, KeptEvents, QuietControls
from drone.model.conversion import WireConversation, tools_to_wire
from drone.model.litellm_import import litellm
from drone.model.litellm_model import LiteLLMModel
from drone.model.model_families import Family
from shared.clock import SystemClock
from shared.messages import Message, ToolCall
from shared.work_order import Limits, OrderProvider

_REPLY = {"text": "Let me look.", "tool_calls": [{"name": "echo", "arguments": {"text": "x" * 80}}], "repeat": True}
_NO_LIMITS = Limits(max_iterations=0, cost_limit=0, max_run_seconds=0)


@dataclass(frozen=True)
class Row:
    """Median milliseconds for one history length, in steps of two messages each."""

    history: int
    sdk_ms: float
    """litellm alone through `openai/`, the default path for a model name with an address."""
    own_path_ms: float
    """litellm alone through its own HTTP path."""
    step_ms: float
    """A whole step of the loop."""
    ours_ms: float
    """The minimum CPU time of a step, minus the time spent in litellm within the same step."""
    bare_ms: float
    """The minimum CPU time of the bare call."""

    @property
    def ratio(self) -> float:
        """CPU time of a step relative to the bare call on the same path: a busy machine increases neither."""
        return (self.bare_ms + self.ours_ms) / self.bare_ms

    def __str__(self) -> str:
        calls = f"a call {self.sdk_ms:.1f} ms by default, {self.own_path_ms:.1f} ms on the own path"
        ours = f"a step {self.step_ms:.1f} ms, {self.ratio:.2f} times the processor, {self.ours_ms:.2f} ms of ours"
        return f"{self.history} steps of history: {calls}; {ours}"


@dataclass(frozen=True)
class Time:
    """A duration in milliseconds: wall time, and CPU time of all threads."""

    wall: float
    processor: float
    library: float = 0.0
    """The part of the CPU time that was spent in litellm."""


class Library:
    """Measures the CPU time within litellm: the difference of two whole calls would be lost in their noise."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> Library:
        module = litellm()
        self._completion = module.completion
        module.completion = self._counted
        return self

    def __exit__(self, *exc: object) -> None:
        litellm().completion = self._completion

    def _counted(self, *positional: Any, **named: Any) -> Any:
        with self._counting():
            stream = self._completion(*positional, **named)
            advance = type(stream).__next__
        return _Counted(stream, partial(self._next, advance, stream))

    def _next(self, advance: Callable[[Any], Any], stream: Any) -> Any:
        with self._counting():
            return advance(stream)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        began = process_time()
        try:
            yield
        finally:
            self.seconds += process_time() - began


class _Counted:
    """litellm's stream, timed around each chunk."""

    def __init__(self, stream: Any, advance: Callable[[], Any]) -> None:
        self.__dict__.update(_stream=stream, _advance=advance)

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> Any:
        return self._advance()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._stream, name, value)


def measure(histories: Sequence[int], calls: int) -> list[Row]:
    """Measure a row for each length. The kinds of call alternate, so a busy machine slows all of them alike."""
    with endpoint([_REPLY]) as url, ExitStack() as stack:
        # One model for each length, because a model remembers one conversation.
        models = [stack.enter_context(closing(_model(url))) for _ in histories]
        kinds = [
            kind
            for history, model in zip(histories, models, strict=True)
            for kind in _kinds(url, model, _history(history))
        ]
        gc.collect()
        gc.freeze()  # otherwise each collection between two calls scans all of litellm
        stack.callback(gc.unfreeze)
        rounds = [[kind() for kind in kinds] for _ in range(calls + 3)][3:]
    columns = list(zip(*rounds, strict=True))
    return [_row(history, columns[at * 3 : at * 3 + 3]) for at, history in enumerate(histories)]


def _kinds(url: str, model: LiteLLMModel, past: list[Message]) -> list[Callable[[], Time]]:
    return [_alone("openai/scripted", url, past), _alone("hosted_vllm/scripted", url, past), _step(model, past)]


def _row(history: int, columns: Sequence[Sequence[Time]]) -> Row:
    sdk, own_path, step = (statistics.median(time.wall for time in column) for column in columns)
    # The minimum comes from the calls that nothing else disturbed.
    bare = min(time.processor for time in columns[1])
    ours = min(time.processor - time.library for time in columns[2])
    return Row(history, sdk, own_path, step, ours, bare)


def _timed(work: Callable[[], object]) -> Time:
    gc.collect()  # otherwise a call pays for the garbage of the previous one
    began = perf_counter(), process_time()
    work()
    return Time((perf_counter() - began[0]) * 1000, (process_time() - began[1]) * 1000)


def _alone(model: str, url: str, past: list[Message]) -> Callable[[], Time]:
    request: dict[str, Any] = {
        "messages": WireConversation(Family(), "", []).documents(past),
        "tools": tools_to_wire([ECHO]),
    }
    module = litellm()

    def call() -> object:
        more = {"stream": True, "stream_options": {"include_usage": True}}
        return list(module.completion(model=model, api_base=url, api_key="none", **request, **more))

    return partial(_timed, call)


def _step(model: LiteLLMModel, past: list[Message]) -> Callable[[], Time]:
    def step() -> Time:
        agent = Agent(model, EchoToolbox(), KeptEvents(), QuietControls(), _NO_LIMITS, SystemClock())
        agent.begin(past[0].content, past[1:-1], past[-1].content)
        compaction = WindowCompaction(
            model, agent.recorder, agent.hooks, RunBudget(_NO_LIMITS, agent.clock), lambda: agent.tools, ""
        )
        # As in a run, where each step adds to the previous step's count.
        compaction.due(agent.transcript)
        agent.compaction = compaction
        with Library() as library:
            whole = _timed(agent.step)
        return Time(whole.wall, whole.processor, library.seconds * 1000)

    return step


def _model(url: str) -> LiteLLMModel:
    provider = OrderProvider(name="scripted", model="openai/scripted", api_base=url, context_window=10_000_000)
    return LiteLLMModel(provider, None, _NO_LIMITS, KeptEvents(), SystemClock(), QuietControls())


def _history(steps: int) -> list[Message]:
    """A system prompt, this many steps with a result of usual size, and a question."""
    messages = [Message(role="system", content="You are measured. " * 100)]
    for number in range(steps):
        call = ToolCall(id=f"call_{number}", name="echo", arguments=json.dumps({"text": "x" * 200}))
        messages.append(Message(role="assistant", content="Let me look.", tool_calls=(call,)))
        messages.append(Message(role="tool", tool_call_id=call.id, content="a line of output\n" * 60))
    return [*messages, Message(role="user", content="Go on.")]


@contextmanager
def endpoint(replies: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The address of the scripted model in a separate process, so that its work does not count as ours."""
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "script.json"
        script.write_text(json.dumps(replies))
        command = [sys.executable, "-m", "drone.model.scripted.server", "--script", str(script)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield process.stdout.readline().strip()
            finally:
                process.terminate()

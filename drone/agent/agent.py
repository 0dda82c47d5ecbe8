"""The agentic workflow loop: ask the model, run its calls, and again, until it stops or something stops it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from drone.agent.answers import call_ids, call_problem, format_problem, with_distinct_ids
from drone.agent.budget import Bounded, Budget
from drone.agent.journal import Journal, StoreLog
from drone.agent.protocols import Controls, DeltaKind, Model, ModelCallFailed, Recorder, Toolbox, ToolResult, ToolSpec
from drone.agent.transcript import Transcript, mended
from shared.clock import Clock
from shared.errors import FormatError, InterruptLoop, Preempted, Submitted
from shared.events import Stats
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.work_order import Limits


@dataclass
class Agent:
    """One run of the loop. The transcript is valid after every step, however the step ended.

    Pass the `budget` where its limits shall also end a command or a stream: the tools' check and the model's controls
    are then `Bounded(controls, budget)`.
    """

    model: Model
    toolbox: Toolbox
    recorder: Recorder
    controls: Controls
    limits: Limits
    clock: Clock
    budget: Budget | None = None
    store_log: StoreLog | None = None
    """Keeps the full log of a call and returns its SHA-256; None: logs stay where the tool left them."""

    def __post_init__(self) -> None:
        self._budget = self.budget or Budget(self.limits, self.clock)
        self._bounded = Bounded(self.controls, self._budget)
        self._journal = Journal(self.recorder, self.store_log)
        self._tools: list[ToolSpec] = []
        self._ids: set[str] = set()
        self._format_errors = 0
        self._cut = False

    @property
    def transcript(self) -> Transcript:
        return self._journal.transcript

    def run(self, system: str, history: Sequence[Message], prompt: str) -> Outcome:
        """Step until the model stops or a limit is reached, and say how it ended.

        A Preempted without an outcome goes on to the caller, who knows why the run was to stop. So does StaleRun, at
        once and without a word, and any error that is a bug.
        """
        self.begin(system, history, prompt)
        while True:
            try:
                self.step()
            except InterruptLoop as signal:
                self._journal.interrupted(signal)
                outcome = self._outcome(signal)
                if outcome is not None:
                    return replace(outcome, response=outcome.response or self.transcript.last_text())
            except ModelCallFailed as failed:
                self._journal.model_failed(failed)
                return Outcome(ExitStatus.MODEL_ERROR, failed.what, self.transcript.last_text())
            except Exception:
                # Nothing is known of it here: the run's boundary records and judges it, and finds a whole transcript.
                self._journal.abandoned()
                raise

    def begin(self, system: str, history: Sequence[Message], prompt: str) -> None:
        """Lay the opening messages down and start the clock; `run` does this before its first step."""
        past = mended(history)
        self._ids = call_ids(past)
        self._tools = self.toolbox.specs()
        self._budget.start()
        self._journal.open(system, past, prompt)

    def step(self) -> None:
        """Put one question to the model and act on the answer."""
        self.execute(self.query())

    def query(self) -> Message:
        """Ask the model, and return its message once it is charged, recorded and in the transcript.

        Raises LimitsExceeded when there is no budget for a further call, FormatError when the answer is of no use.
        """
        self._bounded.check()
        self._budget.check_iterations()
        self.recorder.doing("waiting for the model")
        answer = self.model.answer(self.transcript, self._tools, self._on_delta)
        self._budget.charge(answer.usage)
        message = with_distinct_ids(answer.message, self._ids)
        self._ids |= call_ids([message])
        self._journal.answered(answer, message)
        self._cut = answer.finish_reason == "length"
        if problem := format_problem(answer):
            raise self._format_error(problem)
        self._format_errors = 0
        return message

    def execute(self, message: Message) -> None:
        """Run the calls of a message in order, each answered by one tool message; without calls the model has stopped.

        Raises Submitted when the model is done. Calls after that one are not run, and are answered as such.
        """
        if not message.tool_calls:
            raise Submitted(outcome=Outcome(ExitStatus.STOPPED, "The model ended its work.", message.content))
        for call in message.tool_calls:
            self._bounded.check()
            self._execute_call(call)
        self._journal.say(self.controls.steering(), "steer")

    def stats(self) -> Stats:
        """Totals of the run so far."""
        return self._budget.stats()

    def _on_delta(self, kind: DeltaKind, text: str) -> None:
        self._bounded.check()
        self.recorder.delta(kind, text)

    def _execute_call(self, call: ToolCall) -> None:
        self._journal.called(call)
        self.recorder.doing(f"running {call.name}")
        self._budget.count_tool_call()
        started = self.clock.monotonic()
        problem = call_problem(call, self._tools, cut=self._cut)
        result = ToolResult(output=problem, is_error=True) if problem else self.toolbox.execute(call)
        self._journal.returned(call, result, round((self.clock.monotonic() - started) * 1000))

    def _format_error(self, problem: str) -> FormatError:
        self._format_errors += 1
        outcome = None
        if self._format_errors >= self.limits.max_format_errors:
            reason = f"The model gave {self._format_errors} answers in a row that could not be acted on."
            outcome = Outcome(ExitStatus.FORMAT_ERRORS, reason)
        return FormatError(Message(role="user", content=problem), outcome=outcome)

    def _outcome(self, signal: InterruptLoop) -> Outcome | None:
        """Say how the run ends by this signal; None when it goes on."""
        if isinstance(signal, Preempted) and signal.outcome is None:
            raise signal
        if isinstance(signal, Submitted):
            # What people said meanwhile is not lost: the model stops only when nobody has a word left for it.
            waiting = len(self.transcript)
            self._journal.say(self.controls.steering(), "steer")
            self._journal.say(self.controls.follow_ups(), "follow_up")
            if len(self.transcript) > waiting:
                return None
            return signal.outcome or Outcome(ExitStatus.SUBMITTED, "The model submitted its work.")
        return signal.outcome

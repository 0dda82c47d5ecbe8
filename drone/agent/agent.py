"""The agentic workflow loop: ask the model, run its calls and repeat, until the model stops or the run is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from drone.agent.answer_checks import call_ids, format_problem, with_distinct_ids
from drone.agent.budget import BudgetedControls, RunBudget
from drone.agent.calls import Calls
from drone.agent.hooks import events as hook
from drone.agent.in_memory import NoGuardrails, NoHooks
from drone.agent.protocols import Approvals, Compaction, Controls, Guardrails, Hooks, Model, Planning, Recorder, Toolbox
from drone.agent.recorded_transcript import RecordedTranscript, Source, StoreLog, StoreRaw
from drone.agent.transcript import Transcript
from drone.agent.values import DeltaKind, ModelCallFailed, ModelResponse, ToolSpec, UserMessage
from shared.clock import Clock
from shared.errors import (
    Conflict,
    FormatError,
    Interrupted,
    InterruptLoop,
    LimitsExceeded,
    Preempted,
    Submitted,
    Suspended,
)
from shared.events import CommentStep, RetryStep, Stats
from shared.messages import Message, ToolCall
from shared.outcome import ExitStatus, Outcome
from shared.transcripts import repaired
from shared.work_order import Limits

AgentPhase = Literal["idle", "turn", "compaction"]
OVERFLOW = "context_overflow"


@dataclass
class Agent:
    """One run of the loop. The transcript is valid after every step, however the step ended.

    Pass a `budget` if its limits must also end a running command or stream: the tools' check and the model's controls
    are then `BudgetedControls(controls, budget)`.
    """

    model: Model
    toolbox: Toolbox
    recorder: Recorder
    controls: Controls
    limits: Limits
    clock: Clock
    budget: RunBudget | None = None
    store_log: StoreLog | None = None
    """Stores the full log of a call and returns its SHA-256; None: logs stay where the tool left them."""
    store_raw: StoreRaw | None = None
    """Keeps raw answers; None: none are kept."""
    keep_raw: bool = False
    """Keep every raw answer, not only those that cannot be acted on."""
    hooks: Hooks = field(default_factory=NoHooks)
    guardrails: Guardrails = field(default_factory=NoGuardrails)
    approvals: Approvals | None = None
    """None: no call waits for a person."""
    at_limit: Callable[[ExitStatus], bool] = lambda _: False
    """Called when the run would end at a limit; true: the limit was raised, and the run continues."""
    planning: Planning | None = None
    """None: there is no plan to approve."""
    compaction: Compaction | None = None
    """None: a conversation that exceeds the window ends the run."""
    ids: set[str] = field(default_factory=set)
    """Call ids in use; a child shares its parent's, so that a decision on one call never applies to another."""
    compose: Callable[[str], str] = lambda prompt: prompt
    """Returns the message that opens the run, given the user's prompt as extensions pass it on."""
    notices: Callable[[], Sequence[Message]] = tuple
    """Messages of the run itself for the next question only; they are not added to the transcript."""
    on_step: Callable[[Message], None] | None = None
    """Called after each complete step, when all calls of its message are answered: a later run can resume from it.

    The message also has the calls of steps before it that were broken off: what they changed is reported nowhere else.
    It may go on beside the next question to the model.
    """
    may_suspend: Callable[[Message], bool] = lambda _: False
    """Called when a run that waits for a person should end, with the model's last message, as for `on_step`; true: a
    later run can continue from here, at the calls that have no result yet. False: this run keeps waiting, as each child
    does, whose conversation no later run has.
    """
    at_rest: Callable[[], None] = lambda: None
    """Waits for what `on_step` began; called before the loop returns or raises."""

    def __post_init__(self) -> None:
        self.phase: AgentPhase = "idle"
        self._at_work = threading.Lock()
        """Held by a turn, and by a compaction between two turns."""
        self._has_begun = False
        self._budget = self.budget or RunBudget(self.limits, self.clock)
        self._bounded = BudgetedControls(self.controls, self._budget)
        self._record = RecordedTranscript(self.recorder, self.store_log)
        self._tools: list[ToolSpec] = []
        self._opening: tuple[str, Source] | None = None
        """The opening message, while it waits for the results of calls before it."""
        self._begun: dict[str, ToolCall] = {}
        """The calls since the last complete step, under their ids."""
        self._format_errors = 0
        self._cut = False

    @property
    def transcript(self) -> Transcript:
        return self._record.transcript

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """The tools offered to the model: the same for the whole run, unless a review arrives."""
        return self._tools

    def run(
        self,
        system: str,
        history: Sequence[Message],
        prompt: str,
        source: Source = "prompt",
        *,
        resumes: bool = False,
    ) -> Outcome:
        """Step until the model stops or a limit is reached, and return the outcome.

        `source` is the author of the opening message; `compose` and extensions apply to a prompt only. `resumes`: calls
        without a result at the end of the history are run before that message, since the earlier run was suspended
        there. A Preempted without an outcome propagates to the caller, which knows why the run had to stop, and so does
        any error that is a bug. Raises Conflict while the agent is busy.

        The run may continue with `go_on`; however it ends, call `end` once, when nothing follows.
        """
        with self._turn():
            self.begin(system, history, prompt, source, resumes=resumes)
            return self._until_it_ends()

    def go_on(self, *texts: str) -> Outcome:
        """After `run`: send these texts to the model on behalf of the loop, and step until it ends again."""
        with self._turn():
            self._record.say(texts, "loop")
            return self._until_it_ends()

    def take_up_messages(self) -> bool:
        """Add user messages received since the model stopped to the transcript; True if there were any.

        Follow-ups are taken only if nothing else was said: one that must be answered alone waits for that answer.
        """
        waiting = len(self.transcript)
        # An extension may withhold all that was taken together, and more is behind it.
        while len(self.transcript) == waiting:
            if messages := self.controls.steering():
                self._hear(messages, "steer")
            elif messages := self.controls.follow_ups():
                self._hear(messages, "follow_up")
            else:
                return False
        return True

    def end(self, outcome: Outcome) -> None:
        """Tell guardrails and extensions how the run ended, once, after its last message; nothing if it never began.

        Everything was recorded before it was acted on, so these events announce durable state.
        """
        if not self._has_begun:
            return
        self._has_begun = False
        with self._turn():
            self.guardrails.turn_ends()
            self.hooks.notify(hook.AgentEnd(outcome))
            self.hooks.notify(hook.SavePoint())
            # At a limit, or canceled, a run ends with messages of users that it did not read.
            if not self.controls.pending():
                self.hooks.notify(hook.Settled())
            self.hooks.notify(hook.SessionShutdown())

    def begin(
        self,
        system: str,
        history: Sequence[Message],
        prompt: str,
        source: Source = "prompt",
        *,
        resumes: bool = False,
    ) -> None:
        """Record the opening messages and start the clock; `run` does this before its first step."""
        self._has_begun = True
        self.guardrails.turn_starts()
        self.hooks.notify(hook.SessionStart(bool(history)))
        opening = self.compose(self.hooks.input(prompt)) if source == "prompt" else prompt
        system = self.hooks.system_prompt(system)
        past = repaired(self.hooks.context(repaired(history, open_end=resumes)), open_end=resumes)
        self.ids.update(call_ids(past))
        self._tools = self.toolbox.specs()
        self._calls = self._call_runner()
        self._budget.start()
        self._record.open(system, past)
        self._opening = (opening, source)
        if not self.transcript.open_calls():
            self._open()
        self.hooks.notify(hook.AgentStart())

    def _open(self) -> None:
        if self._opening is not None:
            prompt, source = self._opening
            self._record.say([prompt], source)
            self._opening = None

    def _call_runner(self) -> Calls:
        return Calls(
            transcript=self._record,
            recorder=self.recorder,
            controls=self._bounded,
            budget=self._budget,
            clock=self.clock,
            toolbox=self.toolbox,
            tools=self._tools,
            hooks=self.hooks,
            guardrails=self.guardrails,
            approvals=self.approvals,
            approval_timeout=self.limits.approval_timeout,
            planning=self.planning,
        )

    def step(self) -> None:
        """Ask the model once and act on the answer; calls of its last answer without a result come first."""
        number = self._budget.iterations + 1
        self.hooks.notify(hook.TurnStart(number))
        try:
            message = self._unfinished() or self.query()
            self._begun.update((call.id, call) for call in message.tool_calls)
            self.execute(message)
            if self.on_step is not None:
                self.on_step(self._with_all_begun(message))
            self._begun.clear()
        finally:
            self.hooks.notify(hook.TurnEnd(number))

    def _with_all_begun(self, message: Message) -> Message:
        return message.model_copy(update={"tool_calls": tuple(self._begun.values())})

    def _unfinished(self) -> Message | None:
        """The model's last message with those of its calls that have no result; None: all have one."""
        calls = self.transcript.open_calls()
        return self._last_answer().model_copy(update={"tool_calls": tuple(calls)}) if calls else None

    def _last_answer(self) -> Message:
        answers = (message for message in reversed(self.transcript) if message.role == "assistant")
        return next(answers, Message(role="assistant"))

    def query(self) -> Message:
        """Ask the model, and return its message once it is charged, recorded and in the transcript.

        Raises LimitsExceeded when there is no budget for a further call, FormatError when the answer is unusable.
        """
        self._open()
        self._bounded.check()
        self._budget.check_iterations()
        if self.planning is not None:
            self._record.say(self.planning.settle(), "loop")
        # In place, as the calls of this run have the same list: a review that just arrived adds a tool.
        self._tools[:] = self.toolbox.specs()
        self._make_room()
        answer = self._asked()
        self._budget.charge(answer.usage)
        message = with_distinct_ids(answer.message, self.ids)
        self.ids.update(call_ids([message]))
        problem = answer.format_problem or format_problem(answer)
        wanted = self.store_raw is not None and (self.keep_raw or problem)
        self._record.answered(answer, message, self.store_raw if wanted else None)
        self._cut = answer.finish_reason == "length"
        if problem:
            raise self._format_error(problem)
        self._format_errors = 0
        return message

    def execute(self, message: Message) -> None:
        """Run the calls of a message, each answered by one tool message; without calls the model has stopped.

        Consecutive calls that only read run at the same time; all others one after the other. Answers are in the order
        of the calls. Raises Submitted when the model is done, or when the hooks of every call end the turn. Calls after
        a submission are not run, and their answers say so.
        """
        if not message.tool_calls:
            raise Submitted(outcome=Outcome(ExitStatus.STOPPED, "The model finished its work.", message.content))
        terminate = True
        for batch in self._calls.batches(message.tool_calls):
            terminate = self._calls.run(batch, cut=self._cut) and terminate
        if terminate:
            raise Submitted(outcome=Outcome(ExitStatus.STOPPED, "An extension ended the turn.", message.content))
        self._hear(self.controls.steering(), "steer")

    def _hear(self, messages: Sequence[UserMessage], source: Literal["steer", "follow_up"]) -> None:
        """Add messages of users as extensions pass them on; what they withhold is recorded as a remark."""
        for message in messages:
            received = self.hooks.receive(message.text, source)
            if isinstance(received, hook.Block):
                why = f"An extension withheld a message from the agent: {received.reason}"
                self.recorder.record(CommentStep(text=why, taken_back=tuple(filter(None, [message.id]))))
            else:
                self._record.hear([replace(message, text=received)], source)

    def compact(self, instructions: str = "") -> bool:
        """Compact now, between two turns; True if anything was compacted. Raises Conflict while the agent is busy."""
        if self.phase != "idle" or not self._at_work.acquire(blocking=False):
            raise self._busy()
        try:
            compacted = self._compact("asked", instructions)
            if compacted:
                self.hooks.notify(hook.SavePoint())
            return compacted
        finally:
            self._at_work.release()

    def stats(self) -> Stats:
        """Totals of the run so far."""
        return self._budget.stats()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Raises Conflict inside another turn; a compaction by a thread of an extension is awaited: it is no error."""
        if self.phase == "turn":
            raise self._busy()
        with self._at_work, self._in_phase("turn"):
            yield

    @contextmanager
    def _in_phase(self, phase: AgentPhase) -> Iterator[None]:
        if self.phase == "idle" or (self.phase, phase) == ("turn", "compaction"):
            before, self.phase = self.phase, phase
        else:
            raise self._busy()
        try:
            yield
        finally:
            self.phase = before

    def _busy(self) -> Conflict:
        return Conflict(
            f"the agent is busy (phase: {self.phase})",
            code="E-AGENT-BUSY",
            next="wait until it finishes, or send it a message",
        )

    def _until_it_ends(self) -> Outcome:
        try:
            return self._stepping()
        finally:
            self.at_rest()

    def _stepping(self) -> Outcome:
        outcome: Outcome | None = None
        while outcome is None:
            try:
                outcome = self._stepped()
            except Suspended:
                # Calls without a result keep none: this run, or the one that continues the order, runs them.
                if self.may_suspend(self._with_all_begun(self._last_answer())):
                    raise
            except ModelCallFailed as failed:
                self._record.model_failed(failed)
                return Outcome(ExitStatus.MODEL_ERROR, failed.what, self.transcript.last_text())
            except Exception as error:
                # The cause is unknown here: the run's boundary records and classifies it, with a valid transcript.
                self._record.abandoned()
                self.hooks.notify(hook.AgentError(str(error) or type(error).__name__, ""))
                raise
        return outcome

    def _stepped(self) -> Outcome | None:
        """Make a step; return the outcome if the run ends with it."""
        try:
            self.step()
        except Suspended:
            raise
        except InterruptLoop as signal:
            self._record.interrupted(signal)
            outcome = self._outcome(signal)
            if outcome is not None and not self._raised(signal, outcome):
                return replace(outcome, response=outcome.response or self.transcript.last_text())
        return None

    def _raised(self, signal: InterruptLoop, outcome: Outcome) -> bool:
        """Whether a person raised the limit that would end the run."""
        if not isinstance(signal, LimitsExceeded):
            return False
        try:
            return self.at_limit(outcome.exit_status)
        except Interrupted as message:
            # The limit is reached again before the next answer, and the person is asked again.
            self._record.interrupted(message)
            return True

    def _make_room(self) -> None:
        """Compact before the question if requested, or if the window would be too full."""
        if self.compaction is None or self._budget.ends_with is not None:
            return
        asked = self.controls.compaction_asked()
        try:
            if asked is not None:
                self._compact("asked", asked)
            elif self.compaction.due(self.transcript):
                self._compact("window")
        except ModelCallFailed as failed:
            # There is still room for the question: its result decides the run, not the summary's.
            self._record.model_failed(failed)

    def _compact(self, cause: Literal["window", "overflow", "asked"], instructions: str = "") -> bool:
        if self.compaction is None:
            return False
        with self._in_phase("compaction"):
            self.recorder.doing("compacting the conversation")
            return self.compaction.compact(self.transcript, cause, instructions)

    def _asked(self) -> ModelResponse:
        """Ask; if the conversation is too long, compact it and retry, as often as other calls are retried."""
        attempt = 0
        while True:
            attempt += 1
            self.recorder.doing("waiting for the model")
            extra = [*self.hooks.ephemeral(), *self.notices()]
            messages = [*self.transcript, *extra] if extra else self.transcript
            try:
                answer = self.model.answer(messages, self._tools, self._on_delta)
            except ModelCallFailed as failed:
                if failed.error_class != OVERFLOW or attempt > self.limits.max_retries or not self._compact("overflow"):
                    raise
                what = f"{failed.what} The conversation was compacted."
                self.recorder.record(RetryStep(attempt=attempt, delay_s=0, error_class=OVERFLOW, error=what))
                continue
            if self.compaction is not None:
                self.compaction.learned(answer.usage, messages)
            return answer

    def _on_delta(self, kind: DeltaKind, text: str) -> None:
        self._bounded.check()
        self.recorder.delta(kind, text)

    def _format_error(self, problem: str) -> FormatError:
        self._format_errors += 1
        outcome = None
        if self._format_errors >= self.limits.max_format_errors:
            reason = f"The model gave {self._format_errors} unusable answers in a row."
            outcome = Outcome(ExitStatus.FORMAT_ERRORS, reason)
        return FormatError(Message(role="user", content=problem), outcome=outcome)

    def _outcome(self, signal: InterruptLoop) -> Outcome | None:
        """Return the outcome that this signal gives the run; None if the run continues."""
        if isinstance(signal, Preempted) and signal.outcome is None:
            raise signal
        if isinstance(signal, Submitted):
            # User messages that arrived meanwhile are not lost: the model stops only when none are waiting.
            if self.take_up_messages():
                return None
            done = signal.outcome or Outcome(ExitStatus.SUBMITTED, "The model submitted its work.")
            # A summary at a limit is no end of the work.
            limit = self._budget.ends_with
            return done if limit is None else replace(limit, response=done.response)
        return signal.outcome

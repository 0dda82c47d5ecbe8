"""Assembles the agent of one run: model, tools, rules, prompts, and user additions to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from drone.agent.agent import Agent
from drone.agent.approvals import AskingFor
from drone.agent.budget import BudgetedControls, RunBudget, recorded_apart
from drone.agent.children import SPAWN, Children
from drone.agent.compaction.estimate import Estimate
from drone.agent.compaction.footer import Footer
from drone.agent.compaction.summary import Summarizer
from drone.agent.compaction.window_compaction import WindowCompaction
from drone.agent.plan_gate import PlanGate
from drone.agent.prompts import resumed_prompt, system_prompt, user_prompt
from drone.agent.protocols import Controls, Recorder
from drone.agent.values import ModelCallFailed, ToolResult
from drone.extensions.context import RegisteredModel, RunningAgent
from drone.extensions.merged import Extensions, Services, load
from drone.extensions.sources import Sources
from drone.mcp_servers import McpServers, connect, read_configs
from drone.prompting import PromptParts, PromptSources, read_sources
from drone.runs.beside import Beside, InOrder
from drone.runs.checkpoints import Checkpoints
from drone.runs.context import RunContext
from drone.runs.controls import EndControls
from drone.runs.limit_question import RunLimitQuestion, without_question
from drone.runs.recorder import RawAnswers
from drone.runs.reminders import Nudge, few_answers_left, silence
from drone.tools import AddComment, AnswerReview, Remember, Tools, build_toolbox
from drone.workspace import DefaultBranch, Workspace, note_for_model, note_of_submodules, read_agent_instructions
from shared.errors import LimitsExceeded
from shared.events import CommentStep, ErrorStep, Spent
from shared.work_order import WorkOrder

PROMPT_FOLDER = "prompt"
"""In the drone's home: the owner's additions to the system prompt."""


@dataclass(frozen=True)
class Assembled:
    """An agent ready to run, its system prompt, and the user's prompt or the message that replaces it."""

    agent: Agent
    system: str
    prompt: str
    budget: RunBudget
    nudge: Nudge | None = None
    """For an agent's turn on a task, and for an order whose plan a person approves."""
    plan: PlanGate | None = None


def assemble(order: WorkOrder, workspace: Workspace, context: RunContext, stack: ExitStack) -> Assembled:
    """Build the agent of `order` in `workspace`; everything that must end with the run is pushed onto `stack`.

    User additions that cannot be used are recorded and left out: they never fail a run. An agent's instructions are not
    an addition: raises OrderError `E-AGENT-INSTRUCTIONS` if they cannot be read.
    """
    return _Assembly(_with_instructions(order, workspace, context), workspace, context).assembled(stack)


def _with_instructions(order: WorkOrder, workspace: Workspace, context: RunContext) -> WorkOrder:
    """The order with its agent's instructions, as they are on the default branch now (S-010)."""
    team = order.team
    if team is None or team.instructions is not None or team.instructions_path is None:
        return order
    branch = workspace.published if team.instructions_url is None else _elsewhere(order, team.instructions_url, context)
    text = read_agent_instructions(branch, team.instructions_path, team.agent)
    return order.model_copy(update={"team": team.model_copy(update={"instructions": text})})


def _elsewhere(order: WorkOrder, url: str, context: RunContext) -> DefaultBranch:
    """The default branch of a repository other than the order's."""
    context.check_url(url)
    project = order.project.model_copy(update={"git_url": url})
    return context.workspaces().default_branch(
        order.model_copy(update={"project": project}), context.controls.check_end
    )


def spent_before(order: WorkOrder) -> Spent:
    """What counts against the order's limits already: its path so far, and the money of all its runs."""
    spent = order.resumed.spent if order.resumed else Spent()
    others = order.money.spent if order.money else 0.0
    return spent.model_copy(update={"cost_usd": max(spent.cost_usd, others)})


class _Assembly:
    def __init__(self, order: WorkOrder, workspace: Workspace, context: RunContext) -> None:
        self._order = order
        self._workspace = workspace
        self._context = context
        self._files = workspace.project_files()
        self._budget = RunBudget(order.limits, context.clock, spent_before(order))
        self._controls: Controls | None = None
        self._children: Children | None = None
        self._thread: AddComment | None = None
        self._plan: PlanGate | None = None
        self._beside = Beside()

    def assembled(self, stack: ExitStack) -> Assembled:
        order = self._order
        servers = self._servers(stack)
        extensions = self._extensions(servers, stack)
        self._controls = self._bounded(extensions)
        parts = self._prompt_parts()
        toolbox = self._toolbox(servers, extensions, parts)
        agent = self._agent(toolbox, extensions)
        system = system_prompt(order, parts, tools=toolbox.names)
        prompt = self._opening(parts, agent)
        self._children = self._children_of(agent, extensions, system)
        self._bind(extensions, agent)
        self._report("E-PROMPT", parts.problems)
        self._report("E-MCP", servers.problems)
        self._report("E-TOOL", toolbox.problems)
        return Assembled(agent, system, prompt, self._budget, self._nudge(agent, toolbox), self._plan)

    def _opening(self, parts: PromptParts, agent: Agent) -> str:
        """The user's prompt, which the agent completes, or a note that this run continues an earlier run's work."""
        if self._order.resumed is not None:
            return resumed_prompt(self._order.resumed, self._order.team, in_place=not self._workspace.fresh)
        start = self._workspace.start
        left = _left_branch_note(self._order, agent.recorder, self._context, self._budget)
        notes = (
            left,
            start.change.for_model if start.change is not None else "",
            note_for_model(start.merges),
            note_of_submodules(self._workspace.session.submodules),
        )
        note = "\n\n".join(filter(None, notes))
        agent.compose = partial(self._composed, parts, note)
        return self._order.prompt

    def _composed(self, parts: PromptParts, note: str, prompt: str) -> str:
        """The first message of a run with this prompt."""
        order, reported = self._order.model_copy(update={"prompt": prompt}), len(parts.problems)
        text = user_prompt(order, self._workspace.path, self._context.clock.now(), parts, note)
        self._report("E-PROMPT", parts.problems[reported:])
        return text

    def _servers(self, stack: ExitStack) -> McpServers:
        """Start the MCP servers of the drone's owner, and the project's if the owner allows that."""
        context = self._context
        settings = self._files.settings if context.policy.mcp_servers else None
        configs = read_configs(context.home, settings, context.environ)
        servers = connect(
            configs.servers,
            sandbox=self._workspace.sandbox,
            workspace=self._workspace.path,
            log_dir=context.log_dir,
            check=self._check,
        )
        stack.callback(servers.close)
        servers.problems[:0] = configs.problems
        return servers

    def _extensions(self, servers: McpServers, stack: ExitStack) -> Extensions:
        context, limits = self._context, self._order.limits
        services = Services(
            recorder=InOrder(context.recorder, self._beside),
            controls=context.controls,
            max_retries=limits.max_retries,
            read_only=[tool.spec.name for tool in servers.tools if tool.read_only],
            tool_seconds=limits.command_timeout,
            limits=self._budget.check,
        )
        extensions = load(Sources(context.home, self._files.settings if context.policy.extensions else None), services)
        stack.callback(extensions.close)
        return extensions

    def _prompt_parts(self) -> PromptParts:
        sources = PromptSources(self._context.home / PROMPT_FOLDER, self._files.settings)
        parts = read_sources(sources, self._files.instructions)
        parts.problems[:0] = self._files.problems
        return parts

    def _toolbox(self, servers: McpServers, extensions: Extensions, parts: PromptParts) -> Tools:
        recorder, team = extensions.recorder, self._order.team
        if team is not None:
            self._thread = AddComment(recorder.record, team.unseen)
        self._plan = self._gate(extensions)
        toolbox = build_toolbox(
            self._workspace.path,
            self._workspace.sandbox,
            mode=self._order.session.mode,
            of_mode=self._order.mode,
            command_timeout=self._order.limits.command_timeout,
            log_dir=self._context.log_dir,
            on_output=lambda text: recorder.delta("output", text),
            check=self._check,
            spawn=self._spawn,
            record_todo=recorder.record,
            thread=self._thread,
            asks=self._order.questions,
            plan=self._plan,
            review=AnswerReview(recorder.record, self._order.review, self._context.controls.review_comments),
            memory=Remember(recorder.record) if self._order.memory is not None else None,
            foreign=[*servers.tools, *extensions.tools],
            readable=parts.readable,
            allows=self._context.policy.orders.allows_tool,
            refuse=self._context.policy.check_command,
        )
        if self._plan is not None:
            self._plan.harmless = toolbox.read_only
        return toolbox

    def _gate(self, extensions: Extensions) -> PlanGate | None:
        order = self._order
        if order.plan is None:
            return None
        return PlanGate(
            order.plan,
            recorder=extensions.recorder,
            controls=extensions.controls,
            budget=self._budget,
            clock=self._context.clock,
            timeout=order.limits.approval_timeout,
        )

    def _agent(self, toolbox: Tools, extensions: Extensions) -> Agent:
        order, context = self._order, self._context
        agent = Agent(
            model=context.make_model(order, extensions.recorder, self._bounded(extensions)),
            toolbox=toolbox,
            recorder=extensions.recorder,
            controls=extensions.controls,
            limits=order.limits,
            clock=context.clock,
            budget=self._budget,
            store_log=context.store_log,
            store_raw=RawAnswers(context.log_dir, context.store_log),
            keep_raw=order.keep_raw,
            hooks=extensions.hooks,
            guardrails=extensions.guardrails,
            approvals=AskingFor(order.approve, order.allow, toolbox.read_only, context.policy.orders.refuses_command),
            planning=self._plan,
        )
        if self._thread is not None:
            agent.notices = partial(few_answers_left, self._budget)
        if order.money is not None and order.money.on_limit == "ask":
            agent.at_limit = RunLimitQuestion(
                extensions.recorder, extensions.controls, context.clock, order.limits.approval_timeout, self._budget
            )
        if (plan := self._plan) is not None:
            agent.notices = lambda: plan.notices(agent.transcript)
        if context.checkpoint_store is not None:
            checkpoints = Checkpoints(
                order.run_id,
                self._workspace,
                context.recorder,
                context.checkpoint_store,
                self._budget,
                # A child works in the same workspace.
                toolbox.read_only - {SPAWN},
                context.secrets,
                self._beside,
            )
            agent.on_step, agent.at_rest = checkpoints.take, self._beside.settle
            agent.may_suspend = checkpoints.may_suspend
        self._budget.on_apart = recorded_apart(extensions.recorder.record, "summary")
        agent.compaction = WindowCompaction(
            agent.model, extensions.recorder, extensions.hooks, self._budget, lambda: agent.tools, order.prompt
        )
        return agent

    def _nudge(self, agent: Agent, toolbox: Tools) -> Nudge | None:
        harmless, team = toolbox.read_only - {SPAWN}, self._order.team
        if self._plan is not None:
            return Nudge(agent, self._budget, self._plan.reminder, harmless)
        if team is None or self._thread is None:
            return None
        return Nudge(agent, self._budget, partial(silence, self._thread, team.comments), harmless)

    def _children_of(self, agent: Agent, extensions: Extensions, system: str) -> Children:
        return Children(
            model=agent.model,
            toolbox=agent.toolbox,
            recorder=agent.recorder,
            controls=self._bounded(extensions),
            limits=agent.limits,
            clock=agent.clock,
            budget=self._budget,
            guardrails=agent.guardrails,
            approvals=agent.approvals,
            ids=agent.ids,
            system=system,
            hooks=extensions.hooks.for_children(),
            planning=self._plan,
        )

    def _bind(self, extensions: Extensions, agent: Agent) -> None:
        extensions.bind(
            RunningAgent(
                agent=agent,
                controls=extensions.controls,
                recorder=extensions.recorder,
                cwd=self._workspace.path,
                session_id=self._order.session.id,
                model=self._order.provider.model,
                compact_now=agent.compact,
                prompt=self._order.prompt,
                session_name=self._order.session.name,
                mode=self._order.mode.name if self._order.mode else self._order.session.mode,
                models=[
                    RegisteredModel(each.name, each.model, each.thinking)
                    for each in (self._order.provider, *self._order.provider.fallbacks)
                ],
            )
        )

    def _spawn(self, call_id: str, task: str, tools: Sequence[str] | None) -> ToolResult:
        if self._children is None:
            raise RuntimeError("a child was requested before the agent existed")
        return self._children.spawn(call_id, task, tools)

    def _bounded(self, extensions: Extensions) -> Controls:
        return BudgetedControls(extensions.controls, self._budget)

    def _check(self) -> None:
        # While servers start, there is no loop yet that could receive user messages: they wait for it.
        if self._controls is None:
            self._context.controls.check_end()
        else:
            self._controls.check()

    def _report(self, code: str, problems: Iterable[str]) -> None:
        for problem in problems:
            self._context.recorder.record(ErrorStep(what=problem, code=code))


# --- the branch of the conversation that was left ------------------------------------------------

_LEFT_INSTRUCTIONS = (
    "The user left this branch of the conversation and continues from an earlier point, with the files as they were "
    "there. Say what was tried, what came of it, and what is worth knowing for another approach."
)


def _left_branch_note(order: WorkOrder, recorder: Recorder, context: RunContext, budget: RunBudget) -> str:
    """What the opening message says of a branch that a user left by switching the session (O-034); '' without one.

    The run pays for the summary. If the model fails or a limit is reached, it begins without one, and a step says so.
    Messages of users wait for the loop, and no user is asked to raise a limit. Raises Preempted.
    """
    text = order.session.left_summary
    if not text and order.session.left and order.resumed is None:
        text = _summary_of_left(order, recorder, context, budget)
    return f"Summary of the branch of this conversation that was left:\n\n{text}" if text else ""


def _summary_of_left(order: WorkOrder, recorder: Recorder, context: RunContext, budget: RunBudget) -> str:
    budget.start()
    model = context.make_model(without_question(order), recorder, EndControls(context.controls, budget))
    recorder.doing("summarizing the branch that was left")
    try:
        text = Summarizer(model, recorder, budget, Estimate(model, lambda: (), order.limits)).write(
            order.session.left, "", Footer(request=order.prompt), _LEFT_INSTRUCTIONS
        )
    except (ModelCallFailed, LimitsExceeded) as failed:
        why = failed.what if isinstance(failed, ModelCallFailed) else "a limit of the run was reached."
        recorder.record(ErrorStep(what=f"The branch that was left was not summarized: {why}"))
        return ""
    recorder.record(CommentStep(text=text, left_leaf=order.session.left_leaf))
    return text

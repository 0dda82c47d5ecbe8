"""The wording of forms: titles, labels and hints where those of the declarations are for the command line.

A field is looked up by `operation.field`, then by its own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from control_plane.contract.declarations.operation import Command, Operation

TITLES: Mapping[str, str] = {
    "add_provider": "Add model",
    "edit_provider": "Edit model",
    "remove_provider": "Remove model",
    "test_provider": "Test model",
    "create_agent": "Add agent",
    "create_organization": "Add organization",
    "create_schedule": "Add schedule",
    "create_trigger": "Add trigger",
    "create_webhook": "Add webhook",
    "add_code_host": "Connect code host",
    "edit_code_host": "Edit code host",
    "remove_code_host": "Remove code host",
    "sync_code_host": "Read code host now",
    "map_host_user": "Map user",
    "create_session": "New session",
    "create_task": "New task",
    "submit": "New order",
    "add_memory": "Add note",
    "edit_memory": "Edit note",
    "accept_memory": "Keep note",
    "refuse_memory": "Refuse note",
    "remove_memory": "Delete note",
    "say": "Send a message",
    "clear_queue": "Take back messages",
    "set_mode": "Define mode",
    "answer_order": "Answer",
    "approve": "Approve",
    "approve_plan": "Approve plan",
    "send_back_plan": "Send back plan",
    "deny": "Deny",
    "retry": "Run again from the beginning",
    "resume": "Resume order",
    "comment_task": "Comment",
    "done_task": "Mark as done",
    "dismiss_item": "Dismiss",
    "restore_item": "Put back into the inbox",
    "test_project": "Test project",
    "edit_drone": "Rename or change owner",
    "rotate_drone_keys": "Replace keys",
    "revoke_drone_keys": "Revoke keys",
    "remove_budgets": "Remove budget",
    "prune_audit_log": "Delete old records",
    "create_api_token": "Create API token",
    "revoke_api_token": "Revoke API token",
    "end_login_session": "Log out this browser",
    "create_join_token": "Add a machine",
    "rotate_pool": "Replace the token",
    "create_login_link": "Create log-in link",
    "fork_session": "Fork session",
    "label_entry": "Label this turn",
    "compact_session": "Compact session",
    "edit_attention": "Choose notifications",
    "test_attention": "Send a test message",
}
"""Where the operation's name in words (`Edit project`) would not do."""
QUESTIONS: Mapping[str, str] = {
    "revoke_drone_keys": "Revoke the keys of {name}? Its orders are queued again, and it has to register again.",
    "revoke_api_token": "Revoke this API token? Everything that was created with it ends: tokens, links, log-ins.",
    "revoke_join_token": "Revoke this join token? Drones that joined with it stay.",
    "rotate_pool": "Replace the token of pool {name}? No drone can join with the old one any more.",
    "remove_pool": "Remove pool {name}? Its drones finish their runs and leave.",
    "end_login_session": "Log out this browser?",
    "remove_organization": "Delete organization {name} with its projects, agents, tasks, orders and history?",
    "remove_drone": "Remove drone {name}? Its keys end at once, and its orders are queued again.",
    "cancel_order": "Cancel this order? Its changes so far are kept.",
    "cancel_task": "Cancel task {task_id}? Its run is stopped.",
}
"""What is asked before an operation that destroys something, where its command asks nothing or less."""
MAY_BE_EMPTY = frozenset({"label_entry.text"})
"""Required fields for which an empty text is a value."""
FIRST: Mapping[str, frozenset[str]] = {
    "add_provider": frozenset({"api_base", "api_key"}),
    "create_task": frozenset({"description", "project", "assignee"}),
    "create_schedule": frozenset({"timezone", "task.description", "task.project"}),
    "create_trigger": frozenset({"task.project"}),
    "create_webhook": frozenset({"events"}),
    "create_agent": frozenset({"instructions", "boss"}),
    "submit": frozenset({"provider", "drone", "mode"}),
}
"""Optional fields that are shown at once, not among "More options"."""
HIDDEN = frozenset({"call"})
"""Fields that a button fills."""


@dataclass(frozen=True)
class Wording:
    """The label and the hint of a field; empty: those of its declaration."""

    label: str = ""
    hint: str = ""
    absent: str = ""


_STEPS = "Maximum steps (0 = unlimited)."
_USD = "Maximum cost in USD (0 = unlimited)."
_TIME = "Time limit in seconds (0 = unlimited)."
_LABELS = "Only drones with these labels, such as gpu=yes."
WORDING: Mapping[str, Wording] = {
    "max_iterations": Wording("Step limit", _STEPS),
    "cost_limit": Wording("Cost limit", _USD),
    "max_run_seconds": Wording("Time limit", _TIME),
    "priority": Wording("Priority", "-100 to 100; higher starts first."),
    "mode": Wording("Mode", "plan (read-only), build, test, ship, develop or your own."),
    "title": Wording("Title", "One line."),
    "description": Wording("Description", "For the agents, who read it before they begin.", "the title"),
    "approve": Wording("Approvals", "Calls that wait for a user: yolo (none), risky, or all."),
    "allow": Wording("Allowed commands", "Shell patterns of commands that need no approval, such as git status*."),
    "entry": Wording("Turn", "The id of a turn or of its order, a label, or root."),
    "at": Wording("Turn", "The id of a turn or of its order, a label, or root."),
    "events": Wording("Events", "Such as issues.opened or push; no entry means every event."),
    "create_trigger.events": Wording("Events", "Such as issues.opened or push.", "the usual ones of the code host"),
    "git_url": Wording("Repository", "https, ssh or file address of the git repository."),
    "api_base": Wording("Address", "Address of the endpoint, including /v1."),
    "api_key": Wording("API key", "It is encrypted on arrival and never shown again."),
    "key_variable": Wording("Variable on the drone", "Keep the key on the drone, in this environment variable."),
    "no_key": Wording("No key required", "The endpoint accepts requests without a key."),
    "rpm": Wording("Requests per minute", "For all runs with its key together (0 = as the endpoint says)."),
    "tpm": Wording("Tokens per minute", "Input and output, for all runs with its key together (0 = as above)."),
    "limits": Wording(
        "Limits", "Limits of runs, such as max_retries=5. A limit set closer to a run takes precedence.", "none"
    ),
    "clear_queue.message": Wording("Message", "Id of the message.", "all messages"),
    "params": Wording("Parameters", "Parameters of the model, such as temperature=0."),
    "fallbacks": Wording("Fallbacks", "Models to try, in this order, when this one fails."),
    "rotation": Wording(
        "Taking turns", "off: fallbacks only replace a model that fails. alternate: answer by answer. random: any."
    ),
    "check": Wording("Test it", "A drone tries it at once, or as soon as one is free."),
    "budget_usd_day": Wording(
        "Daily budget", "Model calls that could exceed it are not made. The cost page has other budgets."
    ),
    "setup": Wording("Set-up commands", "Run before the model starts, such as pip install -e ."),
    "verify": Wording("Checks", "Commands that must pass at the end, such as pytest -q."),
    "trailers": Wording("Trailers", "Lines that record the origin of commits: Assisted-by, Fleet-Order."),
    "labels": Wording("Labels", _LABELS),
    "enabled": Wording("Enabled", "While it is off, nothing happens."),
    "expires_s": Wording("Valid for", "Seconds until it expires: 3600 is an hour, 86400 a day."),
    "cron": Wording("Times", "Minute, hour, day, month, weekday: 0 6 * * 1-5 is 6:00 from Monday to Friday."),
    "missed": Wording("Missed times", "After an outage: once creates one task for all of them, skip creates none."),
    "before": Wording("Before", "A time with its zone, such as 2026-01-31T12:00:00Z."),
    "submit.prompt": Wording("What should be done?", "The task in your words; the agent reads it as it is."),
    "submit_graph.orders": Wording(
        "Orders",
        'A JSON list of orders: [{"name": "one", "prompt": "…"}, {"name": "two", "prompt": "…", "after": ["one"]}].',
    ),
    "submit_batch.rows": Wording(
        "Rows", 'A JSON list of orders: [{"id": "one", "project": "shop", "prompt": "…"}, …].'
    ),
    "submit_batch.parallel": Wording("Parallel", "Maximum number of orders that are under way."),
    "retry_batch.which": Wording("Rows", "Rows that failed or were refused, that were canceled, or all of these."),
    "restack": Wording("Keep up to date", "Bring it up to date when a session that it builds on has new work."),
    "thinking": Wording("Thinking", "How much the model thinks: off, minimal, low, medium, high or xhigh."),
    "submit.verify": Wording("Checks", "Commands that must pass at the end, instead of the project's."),
    "submit.reviewer": Wording("Reviewer", "A model that reviews the change before delivery; none: no review."),
    "reviewer": Wording("Reviewer", "A model that reviews changes before they are delivered."),
    "add_memory.text": Wording("Note", "One line that later orders get in their prompts."),
    "edit_memory.text": Wording("Note", "One line that later orders get in their prompts."),
    "add_memory.project": Wording("Project", "Only for this project.", "all projects"),
    "set_mode.text": Wording("Text", "What the agent is told in this mode."),
    "set_mode.tools": Wording("Tools", "Such as file_read, editor or mcp__SERVER__TOOL.", "all tools"),
    "set_mode.read_only": Wording("Read only", "The agent changes no files."),
    "add_project.slug": Wording("Short name", "Lower-case letters, digits, dots and dashes; it stays."),
    "add_project.description": Wording("Description", "What the repository contains, and what it is for."),
    "edit_project.description": Wording("Description", "What the repository contains, and what it is for."),
    "create_organization.description": Wording("Purpose", "Its agents read it in every run."),
    "edit_organization.description": Wording("Purpose", "Its agents read it in every run."),
    "create_organization.concurrency": Wording("Tasks at once", "Maximum tasks in progress (0 = unlimited)."),
    "edit_organization.concurrency": Wording("Tasks at once", "Maximum tasks in progress (0 = unlimited)."),
    "create_agent.instructions_path": Wording("Instructions file", "Instead of instructions: a file in the project."),
    "edit_agent.instructions_path": Wording("Instructions file", "Instead of instructions: a file in the project."),
    "create_agent.name": Wording("Name", "Its name is also its tag: @name."),
    "create_join_token.owner": Wording("Owner", "E-mail address of the user who owns these drones.", "you"),
    "create_join_token.labels": Wording("Labels", "Fixed on these drones, such as gpu=yes."),
    "create_join_token.serves": Wording("Also works for", "Other organizations by name; * means all of them."),
    "create_join_token.uses": Wording("Machines", "How many machines may join with it."),
    "create_webhook.events": Wording("Events", "Such as order.failed or task.waiting; no entry means every event."),
    "edit_webhook.events": Wording("Events", "Such as order.failed or task.waiting; no entry means every event."),
    "set_budget.kind": Wording("For", "Whose runs are limited."),
    "set_budget.name": Wording(
        "Name", "Short name of the project, name of the agent or organization, e-mail address of the user, or session."
    ),
    "set_budget.zone": Wording("Time zone", "Zone in which its days and months begin, such as Europe/Berlin."),
    "edit_user.disabled": Wording("Disabled", "All tokens and browsers of the user are refused until enabled again."),
    "label_entry.text": Wording("Label", "An empty label removes it."),
}


def title(operation: Operation) -> str:
    """The heading of an operation's form: `Edit project`."""
    return TITLES.get(operation.name) or operation.name.replace("_", " ").capitalize()


def button(operation: Operation) -> str:
    """The text of the button that sends it: a verb."""
    verbs = {"submit": "Submit", "say": "Send", "create_join_token": "Create token", "comment_task": "Comment"}
    saves = operation.method == "PATCH" or operation.name in {"set_budget", "set_mode", "set_price"}
    return verbs.get(operation.name) or ("Save" if saves else title(operation))


def question(operation: Operation, names: Mapping[str, Any]) -> str:
    """What is asked before it destroys something; empty for others."""
    declared = operation.command.confirm if isinstance(operation.command, Command) else ""
    return QUESTIONS.get(operation.name, declared).format_map(_Known(names))


_ALIKE: Mapping[str, str] = {"submit_race": "submit"}
"""Operations whose fields are those of another one."""


def wording(operation: str, field: str) -> Wording:
    """What a form says about a field, where that differs from its declaration."""
    alike = _ALIKE.get(operation, operation)
    return WORDING.get(f"{operation}.{field}") or WORDING.get(f"{alike}.{field}") or WORDING.get(field) or Wording()


class _Known(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return key

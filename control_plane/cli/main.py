"""`fleet`: assembles the command groups. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys

from control_plane.cli import (
    api_tokens,
    audit,
    browser,
    checks,
    config_file,
    cost,
    database,
    doctor,
    drones,
    keys,
    local_fleet,
    mcp,
    orders,
    pull_requests,
    retry,
    schedules,
    servers,
    sessions,
    status,
    steering,
    submit,
    task_runs,
    tasks,
    tokens,
    trajectory,
    transfer,
    triggers,
    webhooks,
)
from control_plane.cli.derived_commands import DerivedGroup
from shared.terminal.boundary import run
from shared.terminal.command_line import application

app = application(
    "fleet",
    "Run coding agents on machines that you own: submit work orders, follow them, get branches and patches.",
    environment={
        "FLEET_URL": "the control plane's address; default: the `fleet up` on this machine",
        "FLEET_API_TOKEN": "the API token; default: that of the `fleet up` on this machine",
        "FLEET_CA_FILE": "certificates of authorities to trust, in addition to the machine's",
        "FLEET_ORG": "the organization; default `default`",
        "FLEET_HOME": "home directory of `fleet up`; default $XDG_DATA_HOME/dronefleet/fleet",
    },
    topics={"config": config_file.HELP},
)
for group in (
    submit,
    orders,
    retry,
    steering,
    trajectory,
    sessions,
    pull_requests,
    DerivedGroup(
        "organizations",
        "organization",
        "Manage organizations, which isolate projects, agents, tasks and tokens.",
        "Teams",
        transfer.add_commands,
    ),
    DerivedGroup("agents", "agent", "Manage agents: models with instructions, a boss and limits.", "Teams"),
    DerivedGroup(
        "tasks",
        "task",
        "Manage tasks: threads that agents and users hand to each other.",
        "Teams",
        tasks.add_commands,
    ),
    tasks,
    task_runs,
    DerivedGroup("schedules", "schedule", "Create tasks at scheduled times.", "Teams", schedules.add_others),
    DerivedGroup(
        "triggers",
        "trigger",
        "Create tasks from events of GitHub, GitLab, Gitea and others.",
        "Teams",
        triggers.add_others,
    ),
    DerivedGroup("webhooks", "webhook", "Send webhooks when someone must act.", "Teams", webhooks.add_others),
    drones,
    tokens,
    DerivedGroup("users", "user", "Manage users: people with a role in the organization.", "Setup"),
    api_tokens,
    DerivedGroup("tokens", "login-session", "List and log out browsers.", "Setup"),
    DerivedGroup("providers", "provider", "Manage model providers.", "Setup", checks.add_provider_test),
    DerivedGroup(
        "projects",
        "project",
        "Manage projects: the repositories that orders work on.",
        "Setup",
        checks.add_project_test,
    ),
    DerivedGroup("budgets", "budget", "Limit what runs may cost, per day, month or in total.", "Setup"),
    DerivedGroup("prices", "price", "Set what models cost, where LiteLLM's list is wrong or has no price.", "Setup"),
    DerivedGroup("audit", "audit", "Read and verify the audit log.", "Setup", audit.add_others),
    servers,
    local_fleet,
    database,
    keys,
    status,
    cost,
    browser,
    doctor,
    mcp,
):
    group.add_to(app)


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(app))


if __name__ == "__main__":
    main()

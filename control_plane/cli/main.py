"""`fleet`: assembles the command groups. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys

from control_plane.cli import (
    audit,
    backups,
    batches,
    browser,
    checks,
    config_file,
    cost,
    database,
    doctor,
    drones,
    graphs,
    inbox,
    keys,
    mcp,
    order_files,
    orders,
    organizations,
    plans,
    pull_requests,
    races,
    schedules,
    servers,
    sessions,
    special_answers,
    status,
    steering,
    submit,
    tasks,
    tokens,
    top,
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
    inbox,
    steering,
    DerivedGroup(
        "plans",
        "plan",
        "Edit, approve or send back what an agent plans.",
        "Orders",
        plans.add_others,
        texts=special_answers.plan,
    ),
    DerivedGroup("steering", "queue", "See and take back messages that an agent has not read.", "Orders"),
    DerivedGroup("reviews", "review", "Comment the diff of an order; the agent answers each comment.", "Orders"),
    DerivedGroup(
        "races",
        "race",
        "Give one prompt to several drones or models, and take one result.",
        "Orders",
        texts=special_answers.race,
    ),
    races,
    DerivedGroup(
        "graphs",
        "graph",
        "Submit orders that build on each other.",
        "Orders",
        graphs.add_others,
        texts=special_answers.graph,
    ),
    DerivedGroup(
        "batches",
        "batch",
        "Run many orders from a file, a few at a time.",
        "Orders",
        batches.add_others,
        texts=special_answers.batch,
    ),
    order_files,
    sessions,
    pull_requests,
    DerivedGroup(
        "organizations",
        "organization",
        "Manage organizations, which isolate projects, agents, tasks and tokens.",
        "Teams",
        organizations.add_commands,
        texts=special_answers.organization,
    ),
    DerivedGroup(
        "agents",
        "agent",
        "Manage agents: models with instructions, a boss and limits.",
        "Teams",
        texts=special_answers.agent,
    ),
    DerivedGroup(
        "tasks",
        "task",
        "Manage tasks: threads that agents and users hand to each other.",
        "Teams",
        tasks.add_commands,
        texts=special_answers.task,
    ),
    tasks,
    DerivedGroup(
        "schedules",
        "schedule",
        "Create tasks at scheduled times.",
        "Teams",
        schedules.add_others,
        texts=special_answers.schedule,
    ),
    DerivedGroup(
        "triggers",
        "trigger",
        "Create tasks from events of GitHub, GitLab, Gitea and others.",
        "Teams",
        triggers.add_others,
        texts=special_answers.trigger,
    ),
    DerivedGroup(
        "code_hosts",
        "hosts",
        "Start and continue orders from comments, reviews and checks at GitHub, GitLab or Gitea.",
        "Teams",
    ),
    DerivedGroup(
        "webhooks",
        "webhook",
        "Send webhooks when someone must act.",
        "Teams",
        webhooks.add_others,
        texts=special_answers.webhook,
    ),
    drones,
    DerivedGroup(
        "drones",
        "drone",
        "Show a drone, drain it, give it to another user or remove it.",
        "Drones",
        texts=special_answers.drone,
    ),
    DerivedGroup(
        "tokens",
        "token",
        "Manage join tokens, with which drones register.",
        "Drones",
        tokens.ADD_JOIN.add_to,
        texts=special_answers.join_token,
    ),
    DerivedGroup("pools", "pool", "Manage pools of ephemeral drones.", "Drones", texts=special_answers.pool),
    DerivedGroup(
        "users", "user", "Manage users: people with a role in the organization.", "Setup", texts=special_answers.user
    ),
    DerivedGroup(
        "tokens",
        "api-token",
        "Manage API tokens for users and scripts.",
        "Setup",
        tokens.ADD_API.add_to,
        texts=special_answers.api_token,
    ),
    DerivedGroup("attention", "attention", "Choose how you are notified of what waits for you.", "Setup"),
    DerivedGroup("tokens", "login-session", "List and log out browsers.", "Setup"),
    DerivedGroup(
        "providers",
        "provider",
        "Manage model providers.",
        "Setup",
        checks.add_provider_test,
        settlings=special_answers.provider,
    ),
    DerivedGroup("limits", "limit", "List the limits of runs.", "Setup"),
    DerivedGroup("modes", "mode", "Define modes: what agents are told, and which tools they have.", "Setup"),
    DerivedGroup(
        "projects",
        "project",
        "Manage projects: the repositories that orders work on.",
        "Setup",
        checks.add_project_test,
        settlings=special_answers.project,
    ),
    DerivedGroup("profiles", "profile", "Manage profiles: named sets of defaults for orders.", "Setup"),
    DerivedGroup("memory", "memory", "Manage the notes that later orders get in their prompts.", "Setup"),
    DerivedGroup(
        "budgets",
        "budget",
        "Limit what runs may cost, per day, month or in total.",
        "Setup",
        texts=special_answers.budget,
    ),
    DerivedGroup("prices", "price", "Set what models cost, where LiteLLM's list is wrong or has no price.", "Setup"),
    DerivedGroup("audit", "audit", "Read and verify the audit log.", "Setup", audit.add_others, default="ls"),
    DerivedGroup("retention", "retention", "See how long data is kept, and remove what is due.", "Setup"),
    servers,
    database,
    keys,
    backups,
    status,
    top,
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

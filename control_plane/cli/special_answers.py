"""Answers of derived commands that are more than the labels and values of their fields: for each group, by command.

The functions are imported when a command of their group has an answer to print.
"""

from __future__ import annotations

from control_plane.cli.derived_commands import Settlings, Texts


def agent() -> Texts:
    from control_plane.cli import agent_text

    return {
        "add": agent_text.agent_lines,
        "ls": agent_text.agent_table,
        "tree": agent_text.tree_text,
        "show": agent_text.agent_in_full,
        "edit": agent_text.agent_lines,
    }


def drone() -> Texts:
    from control_plane.cli import drones

    return {
        "show": drones.drone_text,
        "edit": drones.drone_text,
        "drain": drones.drone_text,
        "resume": drones.drone_text,
    }


def graph() -> Texts:
    from control_plane.cli import graphs

    return {
        "show": graphs.graph_text,
        "cancel": graphs.graph_text,
    }


def race() -> Texts:
    from control_plane.cli import races

    return {
        "show": races.race_text,
        "take": races.race_text,
        "cancel": races.race_text,
    }


def batch() -> Texts:
    from control_plane.cli import batch_text

    return {
        "show": batch_text.batch_text,
        "cancel": batch_text.batch_text,
        "retry": batch_text.batch_text,
        "compare": batch_text.comparison_text,
    }


def pool() -> Texts:
    from control_plane.cli import tokens

    return {
        "add": tokens.token_alone,
        "rotate": tokens.token_alone,
    }


def plan() -> Texts:
    from control_plane.cli import plans

    return {
        "show": plans.shown_text,
    }


def organization() -> Texts:
    from control_plane.cli import organizations

    return {
        "add": organizations.organization_lines,
        "ls": organizations.organization_table,
        "show": organizations.organization_lines,
        "edit": organizations.organization_lines,
    }


def budget() -> Texts:
    from control_plane.cli import budget_text

    return {
        "set": budget_text.budget_lines,
        "ls": budget_text.budget_table,
        "show": budget_text.target_lines,
        "rm": budget_text.removed,
    }


def schedule() -> Texts:
    from control_plane.cli import schedules

    return {
        "show": schedules.schedule_text,
        "run": schedules.made_task,
    }


def task() -> Texts:
    from control_plane.cli import task_text

    return {
        "ls": task_text.task_table,
        "show": task_text.task_text,
    }


def join_token() -> Texts:
    from control_plane.cli import tokens

    return {
        "ls": tokens.print_join_tokens,
    }


def api_token() -> Texts:
    from control_plane.cli import tokens

    return {
        "ls": tokens.print_api_tokens,
        "revoke": tokens.revoked_token,
    }


def trigger() -> Texts:
    from control_plane.cli import triggers

    return {
        "show": triggers.trigger_text,
    }


def user() -> Texts:
    from control_plane.cli import tokens

    return {
        "rm": tokens.removed_user,
    }


def webhook() -> Texts:
    from control_plane.cli import webhooks

    return {
        "deliveries": webhooks.deliveries_table,
    }


def project() -> Settlings:
    from control_plane.cli import checks

    return {"add": checks.settled_project, "edit": checks.settled_project}


def provider() -> Settlings:
    from control_plane.cli import checks

    return {"add": checks.settled_provider, "edit": checks.settled_provider}

"""Ten rules of docs/coverage.md, each with a change that breaks it: the named test has to fail then.

The rules were drawn with `random.Random(193).sample(rules, 10)` from all lines of the table.
"""

from __future__ import annotations

from tests.hostile.removed_defenses.removal import removal

SEED = 193

BROKEN = {
    "G-009": removal(
        "integration/operations/test_operations_orders.py"
        "::test_an_order_is_assigned_to_the_only_drone_and_has_a_turn_and_an_outbox_row",
        "control_plane/orders/draft.py",
        "        prompt=order.prompt,\n",
        '        prompt="",\n',
    ),
    "O-082": removal(
        "integration/runs/test_run_reviewer.py"
        "::test_remarks_go_to_the_agent_once_and_what_it_makes_of_them_is_delivered",
        "drone/runs/change_review.py",
        "            return agent.go_on(message_of(step))\n",
        "            return outcome\n",
    ),
    "S-071": removal(
        "unit/agent/test_prompts.py::test_the_thread_section_says_what_an_agent_has_to_know_of_threads",
        "drone/agent/templates/thread.jinja",
        "the last valid tag in it decides who is next",
        "it is stored",
    ),
    "S-125": removal(
        "unit/mcp_server/test_tools_and_skill.py::test_the_command_says_what_it_did",
        "control_plane/cli/mcp.py",
        '"outcome": done.outcome',
        '"outcome": ""',
    ),
    "G-008": removal(
        "integration/workspace/test_workspace_prepare.py::test_new_commits_of_the_remote_are_seen_by_the_next_order",
        "drone/workspace/mirror.py",
        "                self._hold(lambda: self._fetch_if_changed(advertised))\n",
        "                if not self.objects.is_dir():\n"
        "                    self._hold(lambda: self._fetch_if_changed(advertised))\n",
    ),
    "S-113": removal(
        "integration/operations/test_tasks_acting.py"
        "::test_retry_takes_the_agent_of_the_latest_run_and_412_where_there_was_none",
        "control_plane/operations/tasks/acting.py",
        "begun.order_by(Run.started_at.desc(), Run.id.desc())",
        "begun.order_by(Run.started_at, Run.id)",
    ),
    "O-111": removal(
        "integration/operations/test_run_settings.py"
        "::test_the_thinking_level_comes_from_the_closest_level_that_sets_one",
        "control_plane/orders/run_settings.py",
        "    levels = (agent, mode, project,",
        "    levels = (project, mode, agent,",
    ),
    "S-100": removal(
        "bench/test_hand_off_cost.py::test_a_hand_off_goes_from_the_end_of_a_run_to_the_queue_without_anybody_polling",
        "control_plane/teams/hand_off.py",
        "    claim_tasks(db, core, order.organization_id)\n",
        "",
    ),
    "S-007": removal(
        "integration/operations/test_organizations_operations.py"
        "::test_an_organization_is_shown_with_its_tree_of_agents_its_tasks_and_what_it_cost",
        "control_plane/operations/organizations/reading.py",
        "agent_count=db.scalar(agents) or 0",
        "agent_count=0",
    ),
    "S-128": removal(
        "integration/db/test_database_migrations.py::test_models_and_migrations_agree",
        "control_plane/db/migrations/versions/r0001_first_schema.py",
        '        sa.Column("merge_only", sa.Boolean, nullable=False, server_default=sa.false()),\n',
        "",
    ),
}

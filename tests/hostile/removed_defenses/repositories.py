"""Defenses against repositories, users who order work, and other users of the drone's machine."""

from __future__ import annotations

from tests.hostile.removed_defenses.removal import removal

_POLICY = "drone/installation/policy.py"
_TRANSPORTS = "integration/workspace/test_git_transports.py"

REMOVALS = (
    removal(
        "integration/workspace/test_git_owner_config.py::test_what_fetches_and_pushes_need_is_copied_word_for_word_and_no_program",
        "drone/workspace/git_settings.py",
        "    return key.startswith(COPIED)\n",
        "    return True\n",
    ),
    removal(
        "unit/workspace/test_submodule_urls.py::test_no_url_leads_the_drone_to_another_server_or_another_port",
        "drone/workspace/submodule_sources.py",
        " or wanted.host != own.host:\n        return None\n",
        ":\n        return None\n",
    ),
    removal(
        f"{_TRANSPORTS}::test_the_login_of_a_url_reaches_its_server_as_it_is_and_no_server_to_which_that_redirects",
        "drone/workspace/remote.py",
        '"$DRONE_GIT_SERVER" | "$DRONE_GIT_TLS_SERVER")\n',
        "*)\n",
    ),
    removal(
        f"{_TRANSPORTS}::"
        "test_a_private_repository_is_no_submodule_of_a_project_without_its_login_also_if_its_mirror_has_the_commit",
        "drone/workspace/mirror.py",
        "        if self._is_accepted() and self.has(commit):\n",
        "        if self.has(commit):\n",
    ),
    removal(
        "integration/workspace/test_workspace_delivery.py::"
        "test_a_link_in_place_of_a_badly_encoded_file_does_not_bring_the_owners_file",
        "drone/workspace/encodings.py",
        "_INSIDE = os.O_RDONLY | os.O_NOFOLLOW | ",
        "_INSIDE = os.O_RDONLY | ",
    ),
    removal(
        "integration/workspace/test_submodules.py::"
        "test_a_link_where_a_submodules_parent_was_leads_the_next_order_to_nothing_outside",
        "drone/workspace/submodules.py",
        "        where = descend(git.work_tree or Path(), around)\n",
        "        where = os.open((git.work_tree or Path()).joinpath(*around), os.O_RDONLY)\n",
    ),
    removal(
        "integration/runs/test_code_host_service.py::"
        "test_a_redirect_to_a_log_leads_to_an_address_that_was_checked_and_never_into_the_network",
        "drone/services/pull_request/http_api.py",
        "_streamed(http, self._checked(http, address), host)",
        '_streamed(http, http.build_request("GET", address), host)',
    ),
    # The drone's git looks at the workspace with its configuration, which the agent writes.
    removal(
        "hostile/test_hostile_work.py::test_a_hostile_repository_and_what_uses_up_the_machine_get_nothing",
        "drone/workspace/staging.py",
        "    changed, (new, left_out) = at_once(",
        '    git.at(git.work_tree / ".git", git.work_tree).succeeds("status")\n    changed, (new, left_out) = at_once(',
    ),
    removal(
        "acceptance/test_hostile_directory.py::"
        "test_no_part_of_a_fleet_and_no_drone_runs_code_of_the_directory_it_was_started_in",
        "shared/own_programs.py",
        '(sys.executable, "-P", "-m", name, *arguments)',
        '(sys.executable, "-m", name, *arguments)',
    ),
    removal(
        "unit/installation/test_drone_git_urls.py::test_every_spelling_of_an_own_directory_is_refused",
        _POLICY,
        "        if leads_into(url, own):\n",
        "        if False:\n",
    ),
    removal(
        "integration/model/test_model_litellm.py::"
        "test_an_endpoint_without_a_key_gets_a_placeholder_and_never_the_environments",
        "drone/model/call.py",
        '        "api_key": provider.api_key or _no_key(provider),\n',
        '        "api_key": provider.api_key,\n',
    ),
    removal(
        "integration/protocols/test_protocol_thinking.py::test_a_parameter_cannot_send_a_key_of_the_drone_elsewhere",
        "drone/model/route.py",
        "        params = permitted(self.provider.params)\n",
        "        params = self.provider.params\n",
    ),
    removal(
        "integration/worker/test_owner_policy.py::test_the_owner_decides_on_modes_tools_commands_and_spending_also_while_the_drone_runs",
        _POLICY,
        "        if pattern := self.orders.refuses_command(line):\n",
        '        if pattern := "":\n',
    ),
    removal(
        "acceptance/test_private_files.py::"
        "test_a_data_directory_that_was_open_is_closed_with_all_that_an_order_leaves_in_it",
        "shared/terminal/private_files.py",
        "            path.chmod(mode & ~_OTHERS)\n",
        "            return True\n",
    ),
)

"""Defenses against a model, or a repository that directs it: the sandbox, its network, and what is shown of it."""

from __future__ import annotations

from tests.hostile.removed_defenses.removal import Edit, Removal, removal

_BUBBLEWRAP = "drone/sandbox/bubblewrap.py"
_KEEPER = "drone/sandbox/keeper.py"
_ACCESS = "drone/sandbox/network/access.py"
_CGROUPS = "drone/sandbox/resources/cgroups.py"
_NAMESPACE = "drone/sandbox/network/namespace.py"
_OWN_NETWORK = 'str(self._pid), *user, "--net", "--"]'
_SHARED_NETWORK = 'str(self._pid), *user, "--"]'

REMOVALS = (
    removal(
        "unit/tools/test_tools_races.py::test_no_write_is_led_outside",
        "drone/sandbox/entering.py",
        "os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
        "os.O_DIRECTORY | os.O_CLOEXEC",
    ),
    removal(
        "integration/sandbox/test_break_outs.py::test_a_sandbox_holds_every_break_out",
        _BUBBLEWRAP,
        '    *("--unshare-pid", "--unshare-ipc", ',
        '    *("--unshare-ipc", ',
        case="bwrap",
    ),
    # Two layers: the account, and the kernel's settings, which are read-only.
    Removal(
        "integration/sandbox/test_sandbox_account.py::test_what_only_root_may_do_is_refused",
        (
            Edit(_BUBBLEWRAP, "return command if self.user is None else account.switched(command)", "return command"),
            Edit(_BUBBLEWRAP, '["--ro-bind", "/proc/sys", "/proc/sys"] if self.user is not None else []', "()"),
        ),
    ),
    # The drone's own environment, in which its owner may have keys.
    removal(
        "hostile/test_hostile_work.py::test_commands_and_calls_of_a_hostile_model_get_nothing",
        "drone/sandbox/environment.py",
        "    kept = {name: source[name] for name in ALLOWED if name in source}\n",
        "    kept = dict(source)\n",
    ),
    removal(
        "integration/sandbox/test_keepers.py::test_a_command_in_a_namespace_can_do_nothing_to_its_keeper",
        _KEEPER,
        "    _prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)\n",
        "",
        case="bwrap",
    ),
    removal(
        "integration/sandbox/test_keepers.py::test_a_command_has_no_descriptor_of_what_started_it",
        _KEEPER,
        "        os.set_inheritable(each, False)\n",
        "        pass\n",
        case="none",
    ),
    # Two layers: the holder, and the keeper above all holders.
    Removal(
        "integration/sandbox/test_sandbox_processes.py::test_what_a_command_leaves_behind_ends_with_it",
        (
            Edit(_KEEPER, "    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)\n    # `pkill", "    # `pkill"),
            Edit(_KEEPER, "        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)\n        ended", "        ended"),
        ),
        case="none",
    ),
    # One edit for each version of cgroups.
    Removal(
        "integration/sandbox/test_sandbox_resources.py::test_all_processes_of_a_run_share_its_memory",
        (
            Edit(_CGROUPS, '    (group / "memory.limit_in_bytes").write_text(str(limits.memory))\n', ""),
            Edit(_CGROUPS, '    (group / "memory.max").write_text(str(limits.memory))\n', ""),
        ),
        case="bwrap",
    ),
    removal(
        "integration/sandbox/test_sandbox_resources.py::test_a_run_has_only_so_many_processes",
        _CGROUPS,
        '    (group / "pids.max").write_text(str(limits.processes))\n',
        "",
        case="bwrap",
    ),
    removal(
        "integration/sandbox/test_sandbox_resources.py::"
        "test_the_commands_of_a_drone_of_root_have_only_so_many_processes_without_cgroups",
        _BUBBLEWRAP,
        "            command = self.resources.counted(",
        "            self.resources.counted(",
    ),
    removal(
        "integration/sandbox/test_sandbox_resources.py::"
        "test_a_command_that_fills_the_disk_is_ended_and_what_removes_files_is_not",
        "drone/sandbox/resources/usage.py",
        "        if total <= self._limit or total <= self._first:\n",
        "        if True:\n",
    ),
    removal(
        "integration/sandbox/test_sandbox_network.py::test_what_worked_when_the_drone_started_is_never_replaced_by_the_machines_own_network",
        _NAMESPACE,
        "            if self.access.works or not self.access.is_replaceable:\n",
        "            if self.access.chosen:\n",
    ),
    removal(
        "integration/sandbox/test_sandbox_network.py::test_the_machines_own_ports_are_out_of_reach",
        _NAMESPACE,
        _OWN_NETWORK,
        _SHARED_NETWORK,
    ),
    removal(
        "unit/sandbox/test_network_access.py::test_an_address_inside_the_network_is_refused_under_any_name",
        _ACCESS,
        "        if any(is_inside(each) or is_one_of(each, machine) for each in addresses):\n",
        "        if False:\n",
    ),
    removal(
        "unit/sandbox/test_network_access.py::test_the_machines_own_public_addresses_are_refused_under_any_name",
        _ACCESS,
        "is_inside(each) or is_one_of(each, machine) for",
        "is_inside(each) for",
    ),
    removal(
        "unit/automation/test_addresses.py::test_no_webhook_is_sent_to_the_machines_own_public_addresses",
        "control_plane/automation/webhook_addresses.py",
        "is_inside(each) or is_one_of(each, machine) for",
        "is_inside(each) for",
    ),
    removal(
        "unit/sandbox/test_network_access.py::test_the_fleets_own_servers_are_refused_under_any_name",
        _ACCESS,
        "        if addresses & set(_addresses_of(self.own, resolve)):\n",
        "        if False:\n",
    ),
    removal(
        "hostile/test_hostile_pages.py::test_the_address_that_was_checked_is_the_one_that_is_connected_to",
        "drone/sandbox/network/gateway.py",
        "            return _through(self._owners, addresses[0], port)\n",
        "            return _through(self._owners, self._resolve(host, port)[0], port)\n",
    ),
    removal(
        "hostile/test_hostile_pages.py::test_no_secret_leaves_in_a_url",
        "drone/tools/web/page_address.py",
        "    if any(known().has_token(each) for each in (url, unquote(url))):\n",
        "    if False:\n",
    ),
    removal(
        "hostile/test_hostile_pages.py::test_a_hostile_answer_is_a_short_error_in_bounded_time_and_memory",
        "drone/tools/web/page_body.py",
        "        if len(self._content) > MOST_BYTES:\n",
        "        if False:\n",
    ),
    removal(
        "integration/sandbox/test_sandbox_network.py::test_abstract_sockets_and_other_protocols_do_not_lead_out",
        _NAMESPACE,
        _OWN_NETWORK,
        _SHARED_NETWORK,
    ),
    removal(
        "unit/shared/test_redaction.py::test_a_secret_is_removed_in_every_spelling_from_every_channel",
        "shared/redaction/spellings.py",
        "*_in_bytes(_bytes(secret)), secret[::-1]}",
        "*_in_bytes(_bytes(secret))}",
    ),
    removal(
        "integration/runs/test_secrets_in_work.py::test_work_with_a_secret_stays_on_the_drone",
        "drone/runs/delivery.py",
        '        _released("; ".join(places), order, check)\n',
        "        pass\n",
    ),
    removal(
        "browser/test_session_page.py::test_all_of_a_command_that_waits_is_on_the_page_and_nothing_of_it_is_hidden",
        "control_plane/web/templates/session/ask.html",
        "{{ ask.command | visible }}",
        "{{ ask.command | visible | truncate(200, true) }}",
    ),
    removal(
        "integration/sandbox/test_network_proxy.py::"
        "test_a_request_names_the_host_that_was_allowed_whatever_its_client_says",
        "drone/sandbox/network/proxy.py",
        'lines = [f"{method} {path} {version}".encode(), b"Host: " + authority, *kept, b"Connection: close"]',
        'lines = [f"{method} {path} {version}".encode(), *headers, b"Connection: close"]',
    ),
    removal(
        "unit/shared/test_redaction.py::"
        "test_a_text_full_of_beginnings_takes_time_with_its_length_and_not_with_the_square_of_it",
        "shared/redaction/redactor.py",
        r'r"(?=[a-z_\-]{0,249}[0-9A-Z])"',
        r'r"(?=[A-Za-z_\-]*[0-9A-Z])"',
    ),
    removal(
        "unit/layout/test_expressions.py::test_every_expression_takes_time_with_the_length_of_a_text",
        "drone/workspace/delivery.py",
        r'r"(?P<name>[^<>]*)<',
        r'r"\s*(?P<name>[^<>]*?)\s*<',
    ),
)

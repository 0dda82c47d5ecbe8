"""Defenses against a drone with its own credentials."""

from __future__ import annotations

from tests.hostile.removed_defenses.removal import Edit, Removal, removal

_USERS = "control_plane/broker/users.py"
_REPORTS = "control_plane/drones/reports.py"
_TALLY = "control_plane/operations/audit/refusal_tally.py"
_COUNT_SINGLY = "            if self._of_sender[sender] <= SINGLY:\n                return False\n"

REMOVALS = (
    # The names of all keys.
    removal(
        "integration/broker/test_broker_rights.py::test_every_command_outside_the_list_is_refused",
        _USERS,
        '    "-@all",\n    "+ping", "+info",\n',
        '    "-@all",\n    "+ping", "+info", "+keys",\n',
    ),
    removal(
        "hostile/test_hostile_drone.py::test_a_hostile_drone_gets_nothing_and_the_fleet_works_on",
        _USERS,
        'f"(+get +set +del ~{names.lease_key(drone_id)})"',
        "f\"(+get +set +del ~{names.lease_key('*')})\"",
    ),
    removal(
        "integration/supervisor/test_broker_quota.py::"
        "test_what_is_refused_to_a_drone_is_recorded_with_its_name_and_how_often",
        "control_plane/supervisor/broker_access.py",
        "entries = [self._entry(drone, name, of_user[drone.id]) for drone, name in drones]",
        "entries: list[AuditEntry] = []",
    ),
    # A shorter pattern for the queues of answers matches the bindings, too.
    removal(
        "integration/broker/test_broker_rights.py::test_shared_bindings_and_keys_of_another_type_are_not_written",
        _USERS,
        "_REPLY_QUEUES = f\"{'-'.join('?' * length for length in (8, 4, 4, 4, 12))}.reply.celery.pidbox\"",
        '_REPLY_QUEUES = "*.celery.pidbox"',
    ),
    removal(
        "integration/collector/test_foreign_reports.py::test_a_report_that_names_another_drone_changes_nothing_of_it",
        _REPORTS,
        "        if sender.drone_of_run(report.run_id) != sender.drone_id:\n",
        "        if sender.drone_of_run(report.run_id) is None:\n",
    ),
    removal(
        "integration/collector/test_foreign_reports.py::test_work_on_a_branch_of_another_order_is_refused",
        _REPORTS,
        "        _check_branches(report.order_id, report.body)\n",
        "        pass\n",
    ),
    removal(
        "integration/collector/test_foreign_reports.py::test_a_file_that_another_run_stored_is_not_shown_as_its_own",
        "control_plane/operations/runs/blobs.py",
        "    if db.get(Blob, (run_id, sha256)) is None:\n        raise",
        "    if False:\n        raise",
    ),
    removal(
        "integration/collector/test_foreign_reports.py::test_runs_of_another_drone_in_a_heartbeat_or_hello_are_ignored",
        _REPORTS,
        "    own = tuple(run for run in report.runs if sender.drone_of_run(run.run_id) in {None, sender.drone_id})\n",
        "    own = report.runs\n",
    ),
    # Two layers: the bound of the value, and the second try, with each beat in its own transaction.
    Removal(
        "integration/collector/test_hostile_beats.py::"
        "test_a_beat_that_cannot_be_stored_does_not_keep_out_one_that_is_written_with_it",
        (
            Edit("shared/events.py", "Slots = Annotated[int, Field(ge=1, le=64)]", "Slots = int"),
            Edit(
                "control_plane/collector/heartbeats.py", "            if len(beats) > 1:\n", "            if False:\n"
            ),
        ),
    ),
    removal(
        "integration/collector/test_hostile_beats.py::"
        "test_a_live_message_that_cannot_be_read_does_not_delay_the_beats_of_others",
        "control_plane/collector/listener.py",
        "    except (ValueError, RecursionError):\n",
        "    except ValueError:\n",
    ),
    removal(
        "integration/collector/test_garbage.py::test_three_entries_of_60_mb_are_never_read_and_leave_a_note_each",
        "control_plane/collector/stream_entries.py",
        "  if size > tonumber(ARGV[5]) then\n",
        "  if false then\n",
    ),
    # A drone as a user with all rights in its organization.
    removal(
        "integration/web/test_every_route.py::test_a_drones_token_is_accepted_on_no_route_for_people",
        "control_plane/web/access.py",
        'raise Forbidden("a drone\'s token cannot be used here: an API token is required", code="E-TOKEN-KIND")',
        'identity = Caller(identity.organization_id, "default", "admin", identity.name)',
    ),
    removal(
        "integration/web/test_audited_requests.py::"
        "test_many_refusals_of_a_drone_fill_a_hundred_records_and_a_sum_for_each_minute",
        _TALLY,
        _COUNT_SINGLY,
        '            if sender[1] == "drone":\n                return False\n' + _COUNT_SINGLY,
    ),
    removal(
        "integration/web/test_audited_requests.py::"
        "test_many_refusals_of_a_token_fill_a_hundred_records_and_a_sum_for_each_minute",
        _TALLY,
        _COUNT_SINGLY,
        '            if sender[1] == "token":\n                return False\n' + _COUNT_SINGLY,
    ),
    removal(
        "integration/collector/test_garbage.py::"
        "test_a_stream_full_of_garbage_is_read_in_turns_with_the_streams_of_others",
        "control_plane/collector/__init__.py",
        "            for _ in range(_IN_A_ROW):\n",
        "            while True:\n",
    ),
    removal(
        "integration/collector/test_garbage.py::test_raw_entries_are_cut_and_limited_in_number_and_age",
        "control_plane/collector/intake.py",
        "(self.db.scalar(of_drone) or 0) >= _RAW_OF_DRONE or (self.db.scalar(in_all) or 0) >= _RAW_IN_ALL",
        "False",
    ),
    removal(
        "integration/supervisor/test_broker_quota.py::test_what_a_drone_filled_the_broker_with_goes_with_the_drone",
        "control_plane/broker/broker.py",
        "self.redis.delete(*_keys_of(drone_id), *self._oversized_run_keys(drone_id))",
        "self.redis.delete(*_keys_of(drone_id))",
    ),
    removal(
        "integration/supervisor/test_broker_quota.py::"
        "test_a_drone_that_fills_the_broker_is_stopped_and_the_others_work_on",
        "control_plane/supervisor/broker_access.py",
        "                self._stop(drone, held[drone.id], quota)\n",
        "                pass\n",
    ),
    removal(
        "acceptance/test_flower_window.py::test_flower_refuses_the_credentials_of_a_drone",
        "control_plane/telemetry/flower/process.py",
        '    options.basic_auth = [f"{FLOWER_USER}:{password}"]\n',
        "",
    ),
    removal(
        "integration/collector/test_drone_key_rotation.py::"
        "test_revoked_keys_are_refused_everywhere_and_the_orders_go_to_another_drone",
        "control_plane/operations/drones/rotation.py",
        "drone.token_hash, drone.broker_password_hash = hashed(new_secret(DRONE_PREFIX)), hashed(new_secret())",
        "pass",
    ),
)

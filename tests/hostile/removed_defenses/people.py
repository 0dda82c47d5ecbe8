"""Defenses of the HTTP interface, the pages and the command line: against strangers, other sites, and other roles."""

from __future__ import annotations

from tests.hostile.removed_defenses.removal import removal

_ACCESS = "control_plane/web/access.py"
_NO_TOKEN = '    raise Unauthenticated(\n        "a token is required",\n'
_READING = "control_plane/operations/orders/reading.py"
_OF_THE_ORGANIZATION = ".where(Order.organization_id == caller.organization_id)"
_KEY = "            await to_thread.run_sync(check)\n"
_BROWSER_KEY = "control_plane/web/browser_defenses.py"

REMOVALS = (
    removal(
        "integration/web/test_markup_everywhere.py::test_markup_in_any_name_or_text_stays_text_on_every_page",
        "control_plane/web/rendering.py",
        "        autoescape=True,\n",
        "        autoescape=False,\n",
    ),
    removal(
        "acceptance/test_old_credentials.py::test_no_old_credential_is_accepted_and_a_running_order_continues",
        "control_plane/server/embedded/data_dir.py",
        "flower_password=secrets.token_urlsafe(12)",
        "flower_password=self.flower_password or secrets.token_urlsafe(12)",
    ),
    # A page whose name is rebound is taken for one of the fleet's own.
    removal(
        "integration/web/test_every_route.py::test_no_route_answers_under_another_name",
        "control_plane/web/browser_defenses.py",
        "    if name in names or _is_address(name):\n",
        "    if name:\n",
    ),
    # A caller without a token becomes an administrator.
    removal(
        "integration/web/test_every_route.py::test_every_route_but_the_open_ones_answers_401_without_a_token",
        _ACCESS,
        _NO_TOKEN,
        "    from control_plane.core.lookups import organizations\n"
        f"    return organizations.system_caller(core)\n{_NO_TOKEN}",
    ),
    removal(
        "integration/metrics/test_control_plane_metrics.py::test_another_token_is_refused_as_other_requests_are",
        "control_plane/web/monitoring.py",
        "    if not hmac.compare_digest(wanted.encode(), given.encode()):\n",
        "    if not hmac.compare_digest(wanted.encode()[:0], given.encode()[:0]):\n",
    ),
    removal(
        "integration/operations/test_refusal_tally.py::"
        "test_ten_thousand_refusals_from_many_addresses_end_in_one_record_for_the_others",
        "control_plane/operations/audit/refusal_tally.py",
        "entry not in self._counts and sum(each.at == minute for each in self._counts) >= MOST_A_MINUTE",
        "False",
    ),
    removal(
        "integration/web/test_api_access.py::test_a_trusted_proxy_says_who_the_client_is_and_nobody_before_it_does",
        "control_plane/web/server.py",
        "        forwarded_allow_ips=core.settings.trusted_proxies,\n",
        '        forwarded_allow_ips="*",\n',
    ),
    removal(
        "integration/web/test_every_route.py::test_a_form_of_another_site_changes_nothing_on_any_route",
        _ACCESS,
        "            refuse_other_sites(headers, self._core.settings.url)\n",
        "            pass\n",
    ),
    removal(
        "hostile/test_hostile_page.py::test_a_hostile_page_changes_nothing_and_reads_nothing",
        _ACCESS,
        "            refuse_other_sites(headers, self._core.settings.url)\n",
        "            pass\n",
    ),
    removal(
        "browser/test_pages.py::test_another_port_receives_the_cookie_but_not_the_key_without_which_nothing_changes",
        _BROWSER_KEY,
        _KEY,
        "",
    ),
    removal(
        "browser/test_pages.py::test_a_login_link_starts_or_replaces_a_session_only_by_the_button",
        "control_plane/web/templates/login.html",
        '<form method="post" action="/login">\n    <input type="hidden" name="link"',
        '<form method="post" action="/login" data-send-at-once>\n    <input type="hidden" name="link"',
    ),
    removal(
        "integration/web/test_every_route.py::test_no_address_that_is_only_opened_changes_anything",
        "control_plane/web/pages/login.py",
        '    return login_form(core, link=token, next_page=next if len(next) <= MOST_NEXT else "/")\n',
        "    tokens.use_login_link(core, token) if token else None\n    return login_form(core, link=token)\n",
    ),
    removal(
        "integration/web/test_every_route.py::test_a_log_in_never_leads_to_another_site",
        "control_plane/web/destinations.py",
        'address.startswith("/") and not address.startswith(("//", "/\\\\")) and address.isprintable()',
        'address.startswith("/")',
    ),
    removal(
        "acceptance/test_completion.py::test_the_shell_shows_a_title_as_text_and_does_not_evaluate_it",
        "shared/terminal/own_commands.py",
        "    offered+=(${{each/$tab/:}})\n",
        '    eval "offered+=(${{each/$tab/:}})"\n',
    ),
    removal(
        "integration/cli/test_hostile_documents.py::test_no_text_of_a_server_acts_on_the_terminal",
        "shared/terminal/output.py",
        "    return visible_prose(text).translate(_WITHOUT_JOINERS)\n",
        "    return text\n",
    ),
    removal(
        "browser/test_session_page.py::test_markup_in_text_in_flight_stays_text",
        "control_plane/web/static/js/session-flight.js",
        "    place.textContent = place",
        "    place.innerHTML = place",
    ),
    removal(
        "unit/shared/test_texts.py::test_what_hides_something_has_a_mark",
        "shared/visible_text.py",
        "    return _HIDDEN.sub(_mark, text)\n",
        "    return text\n",
    ),
    removal(
        "integration/web/test_every_route.py::test_a_viewer_is_refused_every_operation_above_the_role",
        "control_plane/operations/gateway.py",
        "    require(caller, operation.role)\n",
        "",
    ),
    removal(
        "integration/operations/test_organizations_isolation.py::"
        "test_no_list_and_no_overview_shows_anything_of_another_organization",
        _READING,
        _OF_THE_ORGANIZATION,
        "",
    ),
    removal(
        "hostile/test_openapi.py::test_no_answer_is_an_error_or_undocumented_or_shows_another_organization",
        _READING,
        _OF_THE_ORGANIZATION,
        "",
        case="short",
    ),
    removal(
        "integration/operations/test_users.py::"
        "test_an_organizations_admin_does_not_lock_out_one_of_the_installation_in_their_own_name",
        "control_plane/operations/access/users.py",
        "    own_login = user.id == caller.user_id and caller.token_id is None\n",
        "    own_login = user.id == caller.user_id\n",
    ),
    removal(
        "integration/operations/test_users.py::"
        "test_a_token_in_a_users_name_shows_and_ends_their_browser_sessions_in_its_organization_alone",
        "control_plane/operations/access/login_sessions.py",
        "theirs if caller.everywhere or caller.token_id is None else theirs & here\n",
        "theirs\n",
    ),
    removal(
        "integration/operations/test_operations_tokens.py::"
        "test_a_token_that_is_created_while_its_maker_is_revoked_ends_too",
        "control_plane/operations/access/revocation.py",
        ', with_for_update={"read": True}, populate_existing=True)',
        ", populate_existing=True)",
        case="postgresql",
    ),
    removal(
        "integration/web/test_sse_orders.py::test_a_token_that_is_revoked_is_not_followed_any_further",
        "control_plane/web/stream.py",
        "        if time.monotonic() - self._allowed_at < self._pace.allowed_s:\n",
        "        if True:\n",
    ),
    removal(
        "integration/web/test_every_route.py::test_the_cookie_alone_changes_nothing_on_any_route",
        _BROWSER_KEY,
        _KEY,
        "",
    ),
    removal(
        "integration/operations/test_users.py::"
        "test_a_disabled_user_is_refused_with_token_link_and_session_until_enabled",
        "control_plane/operations/access/validity.py",
        "member.where(*own, User.disabled_at.is_(None))",
        "member.where(*own)",
    ),
    removal(
        "integration/web/test_openid_logins.py::test_an_id_token_with_a_wrong_claim_is_refused",
        "control_plane/services/openid.py",
        "            registry.validate(claims)\n",
        "",
    ),
    removal(
        "integration/web/test_openid_logins.py::test_a_code_works_once_and_only_in_the_browser_that_began",
        "control_plane/web/pages/openid.py",
        "    if begun is None or not in_time or not compare_digest(begun.state.encode(), state.encode()):\n",
        "    if begun is None or not in_time:\n",
    ),
    removal(
        "integration/attention/test_answer_links.py::test_a_link_does_not_answer_a_call_that_was_asked_anew",
        "control_plane/attention/answer_links.py",
        "    if wait is None or wait.asked_at != link.asked_at:\n",
        "    if wait is None:\n",
    ),
    removal(
        "integration/attention/test_answer_links.py::test_a_link_has_only_the_rights_that_its_user_has_now",
        "control_plane/attention/recipients.py",
        ", User.disabled_at.is_(None)\n",
        "\n",
    ),
    removal(
        "integration/attention/test_attention_messages.py::test_hostile_texts_add_no_header_no_markup_and_hide_nothing",
        "control_plane/attention/mail.py",
        "<pre>{escape(each.command)}</pre>",
        "<pre>{each.command}</pre>",
    ),
    removal(
        "integration/operations/test_transfer.py::test_what_the_api_refuses_an_import_refuses",
        "control_plane/operations/transfer/settings.py",
        "    if check := _CHECKS.get(kind):\n",
        "    if check := _CHECKS.get(kind) and None:\n",
    ),
    removal(
        "integration/operations/test_transfer.py::test_a_json_column_holds_what_its_model_declares",
        "control_plane/operations/transfer/checking.py",
        "        shape.validate_python(value, strict=True)\n",
        "        pass\n",
    ),
    removal(
        "integration/supervisor/test_bad_rows.py::test_a_row_that_cannot_be_read_delays_no_row_of_another_organization",
        "control_plane/core/rows.py",
        "        except (FleetFault, OperationalError, InterfaceError):\n",
        "        except Exception:\n",
        case="teams",
    ),
)

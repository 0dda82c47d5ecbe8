"""Defenses of where work comes from: code hosts, notes of earlier work, and plans that users approve."""

from __future__ import annotations

from tests.hostile.removed_defenses.removal import removal

_ACTING = "integration/code_hosts/test_acting.py"
_CALLER = "        caller = turns.mapped_caller(self.db, self.link, seen.author, seen.account)\n"

REMOVALS = (
    # Who is not mapped comments as the user of whom one knows.
    removal(
        f"{_ACTING}::test_a_user_who_is_not_mapped_gets_no_order_and_no_word",
        "control_plane/operations/code_hosts/acting.py",
        _CALLER,
        '        caller = turns.mapped_caller(self.db, self.link, "alice", "1")\n',
    ),
    removal(
        f"{_ACTING}::test_edited_quoted_old_and_our_own_comments_start_nothing",
        "control_plane/operations/code_hosts/texts.py",
        "    if not word.search(_without_quotes(text)):\n",
        "    if not word.search(text):\n",
    ),
    removal(
        f"{_ACTING}::test_markup_and_hidden_characters_of_an_issue_reach_the_agent_as_visible_quotations",
        "control_plane/operations/code_hosts/texts.py",
        'f"| {visible(line)}".rstrip()',
        "line",
    ),
    removal(
        f"{_ACTING}::test_follow_ups_are_bounded_and_the_bound_is_said_once",
        "control_plane/operations/code_hosts/acting.py",
        "        if thread.follow_ups >= self.link.max_follow_ups:\n",
        "        if thread.follow_ups > 1000:\n",
    ),
    removal(
        "integration/code_hosts/test_arriving.py::"
        "test_a_wrong_signature_and_an_unknown_connection_are_refused_in_the_same_words",
        "control_plane/operations/code_hosts/arriving.py",
        '    if not is_signed(row.kind if row else "github", secret, headers, body) or row is None:\n',
        '    is_signed(row.kind if row else "github", secret, headers, body)\n    if row is None:\n',
        case="github",
    ),
    removal(
        "integration/runs/test_code_host_service.py::"
        "test_a_log_on_another_server_is_read_without_the_login_and_only_its_end",
        "drone/services/pull_request/http_api.py",
        "                own = {}\n",
        "",
    ),
    removal(
        "integration/operations/test_memory.py::test_a_proposed_note_is_in_no_prompt_until_a_user_keeps_it",
        "control_plane/orders/memory_notes.py",
        '    kept = MemoryNote.organization_id == organization_id, MemoryNote.state == "kept", in_scope(project_id)\n',
        "    kept = MemoryNote.organization_id == organization_id, in_scope(project_id)\n",
    ),
    removal(
        "unit/agent/test_plan_gate.py::test_until_the_approval_only_reading_tools_run_and_afterwards_all_of_them",
        "drone/agent/plan_gate.py",
        '            case "planning" if call.name not in self.harmless:\n',
        '            case "planning" if not call.name:\n',
    ),
    removal(
        "integration/web/test_session_pages_http.py::test_a_decision_is_about_what_the_page_showed",
        "control_plane/orders/waits.py",
        "    if digest is not None and digest != digest_of(wait):\n",
        "    if False:\n",
        case="/orders/{0}",
    ),
)

"""Defenses against anyone who controls the broker, its network or a copy of the database."""

from __future__ import annotations

from tests.hostile.removed_defenses.removal import Edit, Removal, removal

_ENVELOPE = "shared/envelope.py"

REMOVALS = (
    # Sealing and opening without the box, which belong together.
    Removal(
        "unit/shared/test_envelope_sealing.py::test_one_changed_bit_anywhere_and_it_does_not_open",
        (
            Edit(_ENVELOPE, "bytes(box.encrypt(sealed, encoder=RawEncoder))", "sealed"),
            Edit(
                _ENVELOPE,
                "Box(PrivateKey(private), PublicKey(sender)).decrypt(base64.b64decode(text, validate=True))",
                "base64.b64decode(text, validate=True)",
            ),
        ),
    ),
    removal(
        "unit/shared/test_envelope_sealing.py::test_an_envelope_that_belongs_elsewhere_is_refused_with_the_reason",
        _ENVELOPE,
        "    wrong = _differences(sealed.binding, expect)\n",
        "    wrong: list[str] = []\n",
    ),
    removal(
        "unit/worker/test_drone_inbox.py::test_a_message_that_is_replayed_after_a_restart_has_no_effect_and_a_newer_one_has",
        "drone/worker/inbox.py",
        "        elif self._is_replayed(issued_at, last):\n",
        "        elif False:\n",
    ),
    removal(
        "integration/broker/test_broker_tls.py::test_a_broker_of_an_unknown_authority_is_refused",
        "shared/sockets.py",
        '"ssl_cert_reqs": ssl.CERT_REQUIRED',
        '"ssl_cert_reqs": ssl.CERT_NONE',
    ),
    removal(
        "integration/cli/test_drone_commands.py::test_a_server_with_another_key_than_the_tokens_is_not_trusted",
        "drone/installation/registration.py",
        "    if key_id(sender) != token.fingerprint:\n",
        "    if False:\n",
    ),
    removal(
        "acceptance/test_tls.py::test_a_drone_that_does_not_know_the_authority_does_not_join",
        "shared/tls.py",
        "    context.load_default_certs()\n",
        "    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE\n",
    ),
    removal(
        "integration/operations/test_operations_projects.py::test_a_provider_key_is_sealed_and_never_shown",
        "control_plane/core/vault.py",
        "base64.b64encode(self.seal_content(text.encode(), purpose)).decode()",
        "base64.b64encode(text.encode()).decode()",
    ),
    removal(
        "integration/db/test_master_key_rotation.py::"
        "test_afterwards_the_new_key_alone_opens_everything_and_the_old_one_nothing",
        "control_plane/services/master_key_rotation.py",
        "            file.replace(keys[:1])\n",
        "",
    ),
    removal(
        "integration/operations/test_audit.py::test_tampering_is_found",
        "control_plane/operations/audit/verifying.py",
        "        if row.previous_hash != self._hash or row.hash != hash_of_row(row):\n",
        "        if row.previous_hash != self._hash:\n",
    ),
    removal(
        "integration/operations/test_audit.py::test_a_chain_that_is_rewritten_with_right_hashes_lacks_the_signature",
        "control_plane/operations/audit/verifying.py",
        "        if self._signed.get(row.seq, row.hash) != row.hash:\n",
        "        if False:\n",
    ),
    removal(
        "integration/operations/test_audit.py::"
        "test_another_secret_that_was_sealed_under_the_master_key_is_no_key_of_the_log",
        "control_plane/core/vault.py",
        'b"dronefleet sealed " + purpose.encode()',
        'b"dronefleet sealed "',
    ),
    removal(
        "integration/supervisor/test_clock_watch.py::test_a_clock_that_jumps_while_the_supervisor_runs_deletes_nothing",
        "control_plane/supervisor/cleaning.py",
        "        if self._is_steady():\n",
        "        if True:\n",
    ),
)

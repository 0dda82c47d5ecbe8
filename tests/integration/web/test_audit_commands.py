"""`fleet audit`: the log in the terminal, the check of its chain, and its head."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import update

from control_plane.db.audit import AuditRecord
from control_plane.declarations import tokens, users
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.declarations.users import UserRequest
from control_plane.operations.audit.keeping import seal_head
from tests.support.command_tree import invoke
from tests.support.fleet import Api


def fleet(api: Api, *words: str) -> subprocess.CompletedProcess[str]:
    return invoke("fleet", "audit", *words, env={"FLEET_URL": api.url, "FLEET_API_TOKEN": api.token})


@pytest.fixture
def busy(api: Api) -> Api:
    """A fleet with a few records, signed."""
    api.add_work()
    with api.http() as script:
        script.delete("/api/v1/projects/nothing")
    seal_head(api.core)
    return api


FILTERS = [
    ("--action", "remove_project"),
    ("--target", "demo", "--outcome", "changed"),
    ("--door", "api", "--code", "E-PROJECT-404"),
    ("--address", "127.0.0.1", "--until", "2999-01-01T00:00:00Z"),
]


def test_an_intact_chain_is_verified_also_against_a_head_that_was_kept(busy: Api) -> None:
    kept = json.loads(fleet(busy, "head", "--json").stdout)
    verified = fleet(busy, "verify", "--head", f"{kept['seq']}:{kept['hash']}")
    assert (verified.returncode, f"{kept['seq']:,}" in verified.stdout) == (0, True)
    replaced = fleet(busy, "verify", "--head", f"{kept['seq']}:{'0' * 64}")
    assert (replaced.returncode, f"record {kept['seq']}" in replaced.stdout) == (1, True)
    refused = fleet(busy, "verify", "--head", "4711")
    assert (refused.returncode, "NUMBER:HASH" in refused.stderr) == (2, True)


def test_tampering_ends_the_check_with_the_record_and_an_exit_code(busy: Api) -> None:
    with busy.core.database.write() as db:
        db.execute(update(AuditRecord).where(AuditRecord.seq == 2).values(target="another"))
    verified = fleet(busy, "verify")
    assert (verified.returncode, "record 2" in verified.stdout) == (1, True)
    assert json.loads(fleet(busy, "verify", "--json").stdout)["problem"] == "changed"


def test_an_export_has_every_record_with_its_hashes_and_the_newest_head(busy: Api, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    exported = fleet(busy, "export", "--everywhere", "--output", str(file))
    *records, end = map(json.loads, file.read_text().splitlines())
    assert exported.returncode == 0, exported.stderr
    assert [each["seq"] for each in records] == list(range(1, len(records) + 1))
    assert [each["previous_hash"] for each in records[1:]] == [each["hash"] for each in records[:-1]]
    assert (end["kind"], end["records"], end["head"]["hash"]) == ("end", len(records), records[-1]["hash"])


def test_an_export_has_the_filters_of_the_list_and_needs_an_admin(busy: Api) -> None:
    for filters in FILTERS:
        exported = fleet(busy, "export", *filters)
        listed = fleet(busy, "ls", "--json", *filters)
        *records, end = map(json.loads, exported.stdout.splitlines())
        assert [each["seq"] for each in records] == [each["seq"] for each in json.loads(listed.stdout)][::-1], filters
        assert 0 < end["records"] < 4, filters
    future = fleet(busy, "export", "--since", "2999-01-01T00:00:00Z")
    assert json.loads(future.stdout) == {"kind": "end", "records": 0, "head": None}
    environment = {"FLEET_URL": busy.url, "FLEET_API_TOKEN": busy.token_for("operator")}
    refused = invoke("fleet", "audit", "export", env=environment)
    assert (refused.returncode, refused.stdout) == (6, "")


def test_an_export_names_the_user_behind_a_token(busy: Api) -> None:
    kim = busy.client.call(users.ADD, UserRequest(email="kim@example.org", name="Kim", role="admin"))
    token = busy.client.call(tokens.CREATE_API, ApiTokenRequest(role="admin", name="kim's", user="kim@example.org"))
    with busy.http(token["token"]) as http:
        http.delete("/api/v1/projects/nothing")
    exported = fleet(busy, "export", "--actor", kim["id"])
    assert [json.loads(line).get("actor_user_id") for line in exported.stdout.splitlines()] == [kim["id"], None]


def test_pruning_asks_first_and_refuses_the_last_day(busy: Api) -> None:
    assert fleet(busy, "prune", "--before", "2999-01-01T00:00:00Z").returncode != 0
    refused = fleet(busy, "prune", "--before", "2999-01-01T00:00:00Z", "--yes")
    assert (refused.returncode, "last 24 hours" in refused.stderr) == (2, True)
    pruned = fleet(busy, "prune", "--before", "2001-01-01T00:00:00Z", "--yes", "--json")
    assert json.loads(pruned.stdout) == {"records": 0, "anchor": None}

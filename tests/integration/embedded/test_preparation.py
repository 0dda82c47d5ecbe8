"""`fleet up` and its server: they hold in memory only what they use while they idle, and find each other."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from control_plane.contract.client.fleet import FleetClient
from control_plane.server.embedded.up import _healthy
from tests.support.documents import ROOT
from tests.support.fleet import Api

_UP = """
import sys
from pathlib import Path
from control_plane.server.embedded.data_dir import DataDir
from control_plane.server.embedded.options import UpOptions
from control_plane.server.embedded.plan import make_plan
from control_plane.server.embedded.up import prepare
from shared.errors import FleetError

for place in map(Path, sys.argv[1:]):
    data = DataDir(place)
    data.open()
    try:
        options = UpOptions(data_dir=data.root, home=data.root.parent, port=0, flower_port=0)
        first = prepare(make_plan(options, data), data)
        print("same" if first == data.admin_token.read_text().strip() else "another")
    except FleetError as error:
        print(type(error).__name__, error.code, error.next)
print(*sorted({name.split(".")[0] for name in sys.modules} & {"sqlalchemy", "alembic", "fastapi", "celery"}))
"""
_SERVER = """
import sys
import control_plane.collector, control_plane.server.serve, control_plane.supervisor, control_plane.web.server
from control_plane.web.app import create_app
rarely_used = {"authlib", "boto3", "httpx2", "joserfc", "litellm", "mcp", "mcp_types", "pywebpush", "tornado"}
print(*sorted({name.split(".")[0] for name in sys.modules} & rarely_used))
"""


def test_the_process_of_fleet_up_prepares_the_database_or_says_why_not_without_loading_what_that_takes(
    tmp_path: Path,
) -> None:
    (tmp_path / "old").mkdir()
    with closing(sqlite3.connect(tmp_path / "old" / "fleet.db")) as old:
        old.executescript("CREATE TABLE alembic_version (version_num); INSERT INTO alembic_version VALUES ('0001')")
    prepared, refused, *_, loaded = _lines(_UP, tmp_path / "data", tmp_path / "old")
    assert (prepared, loaded) == ("same", "")
    assert refused.startswith("Precondition E-DB-UNRELEASED export its organizations")


def test_a_server_loads_the_libraries_of_mcp_openid_and_buckets_only_when_they_are_used() -> None:
    assert _lines(_SERVER) == [""]


def _lines(program: str, *arguments: Path) -> list[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.split("\n")[:-1]


def test_the_server_of_another_fleet_at_the_same_port_is_not_taken_for_its_own(api: Api) -> None:
    own, others = (FleetClient(api.url, token) for token in (api.token, "fl_of_another_fleet"))
    with own, others:
        assert (others.health()["status"], _healthy(others), _healthy(own)) == ("ok", False, True)

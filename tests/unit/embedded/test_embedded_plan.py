"""What `fleet up` works out before it starts anything."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from control_plane.core.settings import FleetSettings
from control_plane.server.embedded import banner, parts
from control_plane.server.embedded.banner import SetUp
from control_plane.server.embedded.data_dir import DataDir
from control_plane.server.embedded.drones import is_ready, must_register
from control_plane.server.embedded.options import UpOptions
from control_plane.server.embedded.plan import Plan, make_plan
from control_plane.server.embedded.ports import choose_port
from shared.errors import Conflict, Invalid, Unreachable
from tests.support.certificates import Authority


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataDir]:
    directory = DataDir(tmp_path / "data with a space")
    directory.open()
    yield directory
    directory.close()


def plan_of(data: DataDir, **options: object) -> Plan:
    settings = {"port": 0, "flower_port": 0, **options}
    return make_plan(UpOptions(data_dir=data.root, home=data.root.parent, **settings), data)  # type: ignore[arg-type]


def test_a_directory_that_cannot_be_used_or_has_a_fleet_already_is_refused(data: DataDir, tmp_path: Path) -> None:
    with pytest.raises(Conflict, match=r"process \d+.*data with a space"):
        DataDir(data.root).open()
    (tmp_path / "file").write_text("here first")
    with pytest.raises(Invalid, match="cannot be used"):
        DataDir(tmp_path / "file").open()


def test_ports_and_passwords_stay_the_same_the_next_time_and_are_for_their_owner_alone(data: DataDir) -> None:
    first = plan_of(data)

    assert plan_of(data).chosen == first.chosen
    assert stat.S_IMODE((data.root / "up.json").stat().st_mode) == 0o600
    assert first.chosen.demo_port == 0
    demo = plan_of(data, demo=True).chosen.demo_port
    assert (plan_of(data, demo=True).chosen.demo_port, plan_of(data).chosen.demo_port) == (demo, demo)


def test_a_chosen_port_is_given_to_nobody_else_until_the_server_listens_that_is_told_its_number(data: DataDir) -> None:
    port = plan_of(data).chosen.port
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with socket.create_server(("127.0.0.1", port)) as server:
        assert server.getsockname()[1] == port


def test_ports_and_addresses_of_ipv6_are_like_those_of_ipv4(data: DataDir) -> None:
    with socket.socket(socket.AF_INET6) as free:
        free.bind(("::1", 0))
        port = free.getsockname()[1]
    assert choose_port("::1", wanted=port, last=0, flag="--port") == port
    hosts = ("::1", "::", "127.0.0.1", "localhost")
    assert all(choose_port(host, wanted=0, last=0, flag="--port") for host in hosts)
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken, pytest.raises(Conflict, match="in use"):
        choose_port("::1", wanted=taken.getsockname()[1], last=0, flag="--port")
    wrong = {}
    for options, urls in (
        ({"host": "::1"}, ("http://[::1]:{0}", "http://[::1]:{0}", "redis://[::1]:{1}/0")),
        (
            {"host": "::", "public_url": "http://[fd00::7]:9"},
            ("http://[::1]:{0}", "http://[fd00::7]:9", "redis://[fd00::7]:{1}/0"),
        ),
        ({"host": "0.0.0.0", "public_url": "http://h"}, ("http://127.0.0.1:{0}", "http://h", "redis://h:{1}/0")),
        ({}, ("http://127.0.0.1:{0}", "http://127.0.0.1:{0}", "redis://127.0.0.1:{1}/0")),
    ):
        plan = plan_of(data, **options)
        expected = tuple(each.format(plan.chosen.port, plan.chosen.broker_port) for each in urls)
        if (found := (plan.local_url, plan.public_url, plan.public_broker_url)) != expected:
            wrong[str(options)] = found
    assert wrong == {}
    assert [plan_of(data, host=host).open_to_others for host in ("::1", "127.0.0.1")] == [False, False]


def test_an_address_that_this_machine_does_not_have_is_named(data: DataDir) -> None:
    for host in ("192.0.2.7", "2001:db8::7", "nohost.invalid", "[::1]", "not an address"):
        with pytest.raises(Invalid) as refused:
            plan_of(data, host=host)
        assert (refused.value.code, host in refused.value.what, bool(refused.value.why)) == ("E-UP-HOST", True, True)


def test_a_public_url_is_the_root_of_a_host(data: DataDir) -> None:
    below = ["http://127.0.0.1:9000/fleet", "https://h/fleet/", "https://h?x", "https://h/#x"]
    for url in [*below, "ftp://h", "h:80", "http://", "x", "http://[::1", "http://h:port"]:
        with pytest.raises(Invalid) as refused:
            plan_of(data, public_url=url)
        assert (refused.value.code, bool(refused.value.why)) == ("E-UP-PUBLIC-URL", True), url
        with pytest.raises(ValidationError):
            FleetSettings(public_url=url)
    for url in ("http://127.0.0.1:9000", "https://h/", "http://[::1]:9000/"):
        assert plan_of(data, public_url=url).public_url == url.rstrip("/")


def test_a_taken_port_is_refused_and_one_of_the_broker_replaced(data: DataDir) -> None:
    before = plan_of(data).chosen.broker_port
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", before))
        other.listen()
        other.listen()
        assert plan_of(data).chosen.broker_port != before
        with pytest.raises(Conflict, match=str(before)) as refusal:
            plan_of(data, port=before)
    assert "--port 0" in refusal.value.next


def test_the_summary_has_the_login_link_whole_on_a_line_and_no_other_secret(data: DataDir) -> None:
    states = [banner.PartState("drone local-1", "online", "sandbox bwrap")]
    plan = plan_of(data)

    text = banner.summary(plan, data, "http://127.0.0.1:1/login?token=x", states, SetUp())

    assert "  http://127.0.0.1:1/login?token=x" in text.splitlines()
    assert all(word in text for word in ("fleet submit", "local-1", str(data.root)))
    assert plan.chosen.broker_password not in text


def test_the_broker_binds_each_address_once_and_its_memory_can_be_limited(
    data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEET_BROKER_MEMORY_MB", "96")
    wide = {"host": "0.0.0.0", "public_url": "http://192.0.2.7:8420"}
    ways = (({}, "127.0.0.1"), ({"host": "127.0.0.2"}, "127.0.0.1 127.0.0.2"), (wide, "0.0.0.0"))
    assert plan_of(data, **wide).public_broker_url.startswith("redis://192.0.2.7:")
    for options, addresses in ways:
        config = Path(parts.broker(plan_of(data, **options), data).command[1]).read_text().splitlines()
        assert {f"bind {addresses}", "maxmemory 96mb"} <= {*config}
    for given in ("63", "-1", "1 GB", "٩٦"):
        monkeypatch.setenv("FLEET_BROKER_MEMORY_MB", given)
        with pytest.raises(Invalid, match="at least 64"):
            parts.broker(plan_of(data), data)


def test_a_drone_is_registered_again_if_it_was_removed_or_revoked_or_knows_other_addresses(tmp_path: Path) -> None:
    addresses = ("http://h:1", "redis://h:2/0", "")
    known = {"id": "d1", "name": "box", "status": "draining", "keys_revoked_at": None}
    assert must_register(tmp_path, addresses, known), "nothing is in its home"
    (tmp_path / "drone.json").write_text(json.dumps({"drone_id": "d1", "server_url": "http://h:1"}))
    (tmp_path / "credentials.json").write_text(json.dumps({"broker_url": "redis://d1:secret@h:2/0"}))
    assert not must_register(tmp_path, addresses, known)
    assert must_register(tmp_path, addresses, None)
    assert must_register(tmp_path, addresses, {**known, "keys_revoked_at": "2026-01-01T00:00:00Z"})
    assert must_register(tmp_path, ("http://h:1", "redis://h:3/0", ""), known)


def test_a_drone_is_ready_once_it_is_heard_even_if_it_takes_no_orders() -> None:
    states = ("online", "busy", "draining", "unresponsive", "offline")
    ready = [is_ready({"status": status}) for status in states]
    assert (ready, is_ready(None)) == ([True, True, True, False, False], False)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


def test_addresses_that_others_cannot_use_are_refused(data: DataDir, authority: Authority) -> None:
    pair = authority.issue("fleet", "127.0.0.1")
    open_to_others = {"host": "0.0.0.0", "public_url": "http://192.0.2.7:8420"}
    tls = {"tls_cert": pair.certificate, "tls_key": pair.key}
    wrong: dict[str, dict[str, object]] = {
        "other machines need an address": {"host": "0.0.0.0"},
        "invalid public URL": {"public_url": "fleet.example.org"},
        "--demo requires": {"demo": True, **open_to_others},
        "--tls-key": {"tls_cert": pair.certificate},
        "not encrypted": {**tls, "public_url": "http://127.0.0.1:8420"},
    }
    for words, options in wrong.items():
        with pytest.raises(Invalid, match=words):
            plan_of(data, **options)


def test_a_fleet_with_a_certificate_is_reached_by_the_name_in_it(data: DataDir, authority: Authority) -> None:
    pair = authority.issue("fleet", "localhost")
    tls = {"tls_cert": pair.certificate, "tls_key": pair.key, "tls_ca": authority.file}

    plan = plan_of(data, public_url="https://localhost", **tls)

    assert plan.local_url == f"https://localhost:{plan.chosen.port}"
    assert plan.environment(data)["FLEET_TLS_CERT_FILE"] == str(pair.certificate)


def test_a_certificate_that_clients_would_refuse_is_refused_at_the_start(data: DataDir, authority: Authority) -> None:
    for host, trusted, code in (("localhost", True, "E-TLS-HOST"), ("127.0.0.1", False, "E-TLS-AUTHORITY")):
        pair = authority.issue(f"fleet-{host}", host)
        with pytest.raises(Unreachable) as refusal:
            plan_of(data, tls_cert=pair.certificate, tls_key=pair.key, tls_ca=authority.file if trusted else None)
        assert refusal.value.code == code

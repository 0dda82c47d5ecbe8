"""What `fleet up` works out before it starts anything."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane.embedded import banner, parts
from control_plane.embedded.banner import SetUp
from control_plane.embedded.data_dir import DataDir
from control_plane.embedded.options import UpOptions
from control_plane.embedded.plan import Plan, make_plan
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


def test_a_second_fleet_in_one_directory_is_refused_and_told_who_has_it(data: DataDir) -> None:
    with pytest.raises(Conflict, match=r"process \d+.*data with a space"):
        DataDir(data.root).open()


def test_a_file_in_the_place_of_the_directory_is_a_clear_refusal(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here first")

    with pytest.raises(Invalid, match="cannot be used"):
        DataDir(tmp_path / "file").open()


def test_ports_and_passwords_stay_the_same_the_next_time(data: DataDir) -> None:
    first = plan_of(data)

    assert plan_of(data).chosen == first.chosen


def test_what_is_remembered_is_for_its_owner_alone(data: DataDir) -> None:
    plan_of(data)

    assert stat.S_IMODE((data.root / "up.json").stat().st_mode) == 0o600


def test_a_taken_port_is_named_with_the_flag_that_changes_it(data: DataDir) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(Conflict, match=str(other.getsockname()[1])) as refusal:
            plan_of(data, port=other.getsockname()[1])

    assert "--port 0" in refusal.value.next


def test_a_broker_port_that_another_program_took_is_replaced(data: DataDir) -> None:
    before = plan_of(data).chosen.broker_port
    with socket.socket() as other:
        other.bind(("127.0.0.1", before))
        other.listen()
        after = plan_of(data).chosen.broker_port

    assert after != before


def test_listening_everywhere_needs_an_address_for_the_others(data: DataDir) -> None:
    with pytest.raises(Invalid, match="other machines need an address"):
        plan_of(data, host="0.0.0.0")


def test_other_machines_are_given_the_public_host_for_the_broker_too(data: DataDir) -> None:
    plan = plan_of(data, host="0.0.0.0", public_url="https://fleet.example.org/")

    assert plan.public_url == "https://fleet.example.org"
    assert plan.public_broker_url == f"redis://fleet.example.org:{plan.chosen.broker_port}/0"


def test_a_demo_is_refused_where_drones_of_other_machines_may_join(data: DataDir) -> None:
    with pytest.raises(Invalid, match="--demo requires") as refusal:
        plan_of(data, demo=True, host="0.0.0.0", public_url="http://192.0.2.7:8420")

    assert refusal.value.code == "E-UP-DEMO"


def test_nonsense_as_public_address_is_refused(data: DataDir) -> None:
    with pytest.raises(Invalid, match="invalid public URL"):
        plan_of(data, public_url="fleet.example.org")


def test_only_a_fleet_that_is_open_to_others_is_warned_of(data: DataDir) -> None:
    assert banner.warning(plan_of(data)) is None
    assert "without TLS" in str(banner.warning(plan_of(data, host="0.0.0.0", public_url="http://192.0.2.7:8420")))


def test_the_summary_has_addresses_states_and_the_login_link_whole_on_a_line(data: DataDir) -> None:
    states = [banner.PartState("drone local-1", "online", "sandbox bwrap")]

    text = banner.summary(plan_of(data), data, "http://127.0.0.1:1/login?token=x", states, SetUp())

    assert all(
        word in text for word in ("login?token=x", "fleet submit", "local-1", str(data.root), "Ctrl-C", "Flower")
    )
    assert "  http://127.0.0.1:1/login?token=x" in text.splitlines()


@pytest.mark.parametrize(
    ("missing", "command"),
    [
        (["provider", "project", "drone"], "fleet provider add"),
        (["project", "drone"], "fleet project add"),
        (["drone"], "fleet token add"),
        ([], "fleet submit"),
    ],
)
def test_the_next_step_is_the_first_that_is_missing(missing: list[str], command: str) -> None:
    assert banner.next_step(SetUp(missing)).startswith(command)


def test_a_running_demo_is_the_next_step_and_a_stopped_one_is_explained(data: DataDir) -> None:
    def lines(demo: SetUp) -> list[str]:
        return banner.summary(plan_of(data), data, "http://127.0.0.1:1/login?token=x", [], demo).splitlines()

    running, stopped = lines(SetUp(demo="running")), lines(SetUp(["provider"], demo="stopped"))

    assert "  fleet submit 'Fix slug.sh so that sh test.sh passes' --project demo --follow" in running
    assert any(line.startswith("  fleet provider add main") for line in stopped)
    assert all("  fleet project rm demo --yes && fleet provider rm demo --yes" in each for each in (running, stopped))
    # The lines with paths are as long as those are.
    assert max(len(line) for line in [*running, *stopped] if str(data.root) not in line) <= 80


def test_a_demos_port_is_chosen_only_for_a_demo_and_stays(data: DataDir) -> None:
    assert plan_of(data).chosen.demo_port == 0
    first = plan_of(data, demo=True).chosen.demo_port

    assert (plan_of(data, demo=True).chosen.demo_port, plan_of(data).chosen.demo_port) == (first, first)


def test_the_summarys_secrets_are_the_login_link_and_flowers_password_only(data: DataDir) -> None:
    plan = plan_of(data)

    text = banner.summary(plan, data, "http://127.0.0.1:1/login?token=x", [], SetUp())

    assert plan.chosen.broker_password not in text


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


def test_a_fleet_with_a_certificate_is_reached_by_the_name_in_it(data: DataDir, authority: Authority) -> None:
    pair = authority.issue("fleet", "localhost")
    tls = {"tls_cert": pair.certificate, "tls_key": pair.key, "tls_ca": authority.file}

    plan = plan_of(data, public_url="https://localhost", **tls)

    assert plan.local_url == f"https://localhost:{plan.chosen.port}"
    assert plan.environment(data)["FLEET_TLS_CERT_FILE"] == str(pair.certificate)


@pytest.mark.parametrize(
    ("host", "trusted", "code"), [("localhost", True, "E-TLS-HOST"), ("127.0.0.1", False, "E-TLS-AUTHORITY")]
)
def test_a_certificate_that_clients_would_refuse_is_refused_at_the_start(
    data: DataDir, authority: Authority, host: str, trusted: bool, code: str
) -> None:
    pair = authority.issue("fleet", host)
    with pytest.raises(Unreachable) as refusal:
        plan_of(data, tls_cert=pair.certificate, tls_key=pair.key, tls_ca=authority.file if trusted else None)

    assert refusal.value.code == code


def test_a_certificate_without_its_key_is_refused(data: DataDir, authority: Authority) -> None:
    with pytest.raises(Invalid, match="--tls-key"):
        plan_of(data, tls_cert=authority.issue("fleet", "127.0.0.1").certificate)


def test_a_public_url_without_encryption_is_refused_with_a_certificate(data: DataDir, authority: Authority) -> None:
    pair = authority.issue("fleet", "127.0.0.1")
    with pytest.raises(Invalid, match="not encrypted"):
        plan_of(data, tls_cert=pair.certificate, tls_key=pair.key, public_url="http://127.0.0.1:8420")


@pytest.mark.parametrize(
    ("options", "addresses"),
    [
        ({}, "127.0.0.1"),
        ({"host": "127.0.0.2"}, "127.0.0.1 127.0.0.2"),
        ({"host": "0.0.0.0", "public_url": "http://192.0.2.7:8420"}, "0.0.0.0"),
    ],
)
def test_the_broker_binds_each_address_once(data: DataDir, options: dict[str, str], addresses: str) -> None:
    config = Path(parts.broker(plan_of(data, **options), data).command[1])

    assert f"bind {addresses}" in config.read_text().splitlines()


def test_the_memory_of_the_broker_can_be_limited(data: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_BROKER_MEMORY_MB", "96")

    config = Path(parts.broker(plan_of(data), data).command[1])

    assert "maxmemory 96mb" in config.read_text().splitlines()


@pytest.mark.parametrize("given", ["63", "-1", "1 GB", "٩٦"])
def test_a_wrong_limit_of_the_brokers_memory_is_refused(
    data: DataDir, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("FLEET_BROKER_MEMORY_MB", given)

    with pytest.raises(Invalid, match="at least 64"):
        parts.broker(plan_of(data), data)

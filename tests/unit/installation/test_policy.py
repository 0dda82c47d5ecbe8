"""The owner's policy: what it allows, when, at which cost, and that nothing is allowed by mistake."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from drone.installation.doctor import check_limits, check_policy
from drone.installation.home import DroneHome
from drone.installation.owner_rules import KeepRules, OrderRules, When
from drone.installation.owner_rules.times import read_hours, time_left
from drone.installation.policy import Policy, load, policy_file
from drone.installation.server_checks import check_clock
from drone.installation.spending import DaySpending
from drone.sandbox.account import is_root
from drone.sandbox.network import NetworkAccess
from drone.sandbox.resources import ResourceLimits, available
from shared.errors import Forbidden, Precondition
from shared.terminal.doctor import FAIL, OK, WARN, Check, State
from tests.support.clocks import HandClock
from tests.support.runs import order_for

HERE = "http://127.0.0.1:8420"
ELSEWHERE = "https://fleet.example.org"


def written(directory: Path, text: str) -> Path:
    file = directory / "policy.toml"
    file.write_text(text)
    return file


def test_a_policy_is_read_as_it_stands_and_without_a_file_nothing_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/xdg-me")
    assert policy_file({}) == Path("/etc/xdg-me/dronefleet/policy.toml")
    assert policy_file({"DRONE_POLICY": "/p.toml"}) == Path("/p.toml")

    none = load(tmp_path / "none.toml")
    assert none == Policy(extensions=False, mcp_servers=False, file_urls=None, keys={}, pull_requests=True)
    assert (none.keep, none.network) == (KeepRules(7, 30, 30, None, None), NetworkAccess("public", chosen=False))

    repositories = "[repositories]\nextensions = true\nfile_urls = false\npull_requests = false\n"
    days = '[keep]\nrun_days = 14\nworkspace_days = "none"\nmirror_days = 1\n'
    spaces = 'workspace_space = "2 MiB"\nmirror_space = "none"\n'
    sizes = '[limits]\nmemory = "2 GB"\ncpus = 1.5\nfile_size = "3MiB"\ndisk = 5000000\nprocesses = 100\n'
    hosts = '[network]\naccess = "hosts"\nhosts = ["git.example", "10.0.0.5:3000"]\n[keys]\nKEY = ["api.example"]\n'
    read = load(written(tmp_path, repositories + days + spaces + sizes + hosts))
    assert (read.extensions, read.file_urls, read.pull_requests) == (True, False, False)
    assert (read.keys, read.keep) == ({"KEY": ("api.example",)}, KeepRules(14, None, 1, 2 * 1024**2, None))
    assert read.network == NetworkAccess("hosts", ("git.example", "10.0.0.5:3000"), chosen=True)
    assert read.limits == ResourceLimits(2 * 10**9, 100, 1.5, 3 * 1024**2, 5_000_000)
    lifted = load(written(tmp_path, '[network]\n[limits]\nprocesses = "none"'))
    assert (lifted.network, lifted.limits) == (NetworkAccess("public", chosen=True), ResourceLimits(processes=None))


def test_remote_repositories_are_always_allowed_and_helper_programs_of_git_never() -> None:
    for url in ("https://h/r.git", "http://h/r", "ssh://git@h/r", "git@h:r.git", "h:r", "git://h/r", "SSH://h/r"):
        Policy(file_urls=False).check_git_url(url, ELSEWHERE)
    for url in ("ext::sh -c date", "fd::3", "ftp://h/r", "javascript://x", "transport::address"):
        with pytest.raises(Forbidden):
            Policy(file_urls=True).check_git_url(url, HERE)


def test_this_machines_disk_is_open_to_a_control_plane_on_loopback_alone() -> None:
    for url in ("file:///srv/r.git", "/srv/r.git", "./r", "dir/a:b", "FILE:///r"):
        Policy().check_git_url(url, HERE)
        Policy().check_git_url(url, None)
        Policy(file_urls=True).check_git_url(url, ELSEWHERE)
        with pytest.raises(Forbidden):
            Policy().check_git_url(url, ELSEWHERE)
        with pytest.raises(Forbidden):
            Policy(file_urls=False).check_git_url(url, HERE)


def test_a_key_goes_only_to_the_hosts_it_was_allowed_for() -> None:
    policy = Policy(keys={"KEY": ("api.example.org",)})
    policy.check_key("KEY", "https://api.example.org/v1")
    for key, url in (("KEY", "https://evil.example/v1?api.example.org"), ("OTHER", "https://api.example.org/v1")):
        with pytest.raises(Forbidden, match=key):
            policy.check_key(key, url)
    with pytest.raises(Forbidden, match="the provider"):
        policy.check_key("KEY", None)
    with pytest.raises(Forbidden) as refused:
        Policy(keys={"KEY": ("127.0.0.1",)}).check_key("KEY", "http://127.0.0.1:8000/v1")
    assert refused.value.next == 'on the drone: KEY = ["http://127.0.0.1:8000"] under [keys] in policy.toml'
    Policy(keys={"KEY": ("*",)}).check_key("KEY", None)


def test_a_key_goes_only_to_the_same_scheme_host_and_port() -> None:
    cases: list[tuple[str, list[str], list[str]]] = [
        (
            "api.example",
            ["https://api.example/v1", "https://api.example:443", "HTTPS://API.example./v1", "https://me@api.example"],
            ["http://api.example", "https://api.example:8443", "https://api.example.evil.example", "api.example"],
        ),
        ("https://api.example", ["https://api.example/v1"], ["http://api.example:8080", "http://api.example:443"]),
        ("api.example:8443", ["https://api.example:8443/v1"], ["https://api.example", "http://api.example:8443"]),
        ("http://127.0.0.1:8000", ["http://127.0.0.1:8000/v1"], ["http://127.0.0.1", "https://127.0.0.1:8000"]),
        ("http://[::1]:8000", ["http://[::1]:8000/v1"], ["http://127.0.0.1:8000", "http://[::1]:8001"]),
        ("api.example", [], [r"https://evil.example\@api.example", "https://a@evil.example@api.example", "https://["]),
    ]
    for rule, allowed, refused in cases:
        policy = Policy(keys={"KEY": (rule,)})

        for url in allowed:
            policy.check_key("KEY", url)
        for url in refused:
            with pytest.raises(Forbidden, match="KEY"):
                policy.check_key("KEY", url)


def at(day: int, hour: int, minute: int = 0) -> datetime:
    """A moment in November 2026, whose 23rd is a Monday."""
    return datetime.fromisoformat(f"2026-11-{day:02}T{hour:02}:{minute:02}:00+00:00")


def test_hours_are_read_as_they_are_written() -> None:
    cases: list[tuple[str, list[datetime], list[datetime]]] = [
        ("Mon-Fri 20:00-07:00", [at(23, 20), at(24, 6, 59), at(28, 3)], [at(23, 19, 59), at(23, 6), at(28, 20)]),
        ("Sat,Sun", [at(28, 0), at(29, 23, 59)], [at(27, 23, 59), at(30, 0)]),
        ("09:00-17:00", [at(23, 9), at(29, 16, 59)], [at(23, 17), at(23, 8, 59)]),
        ("fri - mon 0:00-24:00", [at(27, 1), at(30, 23)], [at(24, 1)]),
    ]
    for text, inside, outside in cases:
        hours = read_hours(text)

        assert [hours.contain(moment) for moment in inside] == [True] * len(inside), text
        assert [hours.contain(moment) for moment in outside] == [False] * len(outside), text


def test_hours_that_follow_each_other_count_together() -> None:
    cases: list[tuple[list[str], datetime, float]] = [
        (["Mon-Fri 20:00-07:00"], at(23, 21), 10),
        (["Mon-Fri 20:00-07:00"], at(24, 6, 30), 0.5),
        (["Mon-Fri 20:00-07:00"], at(24, 12), 0),
        (["Sat,Sun"], at(28, 6), 42),
        (["Fri 18:00-24:00", "Sat,Sun", "Mon 00:00-08:00"], at(27, 20), 60),
        (["0:00-24:00"], at(27, 20), 7 * 24 + 4),
    ]
    wrong = [
        (texts, moment, got)
        for texts, moment, hours in cases
        if (got := time_left(tuple(map(read_hours, texts)), moment)) != timedelta(hours=hours)
    ]
    assert wrong == []


def test_a_repository_is_compared_with_what_its_address_leads_to() -> None:
    cases: list[tuple[str, list[str], list[str]]] = [
        (
            "github.com/acme/*",
            ["https://github.com/acme/x", "git@github.com:acme/x.git", "ssh://git@GitHub.com/acme/x.git"],
            [
                "https://github.com/acme/../evil/x",
                "https://github.com/acme/%2e%2e/evil/x",
                "https://github.com.evil.example/acme/x",
                "https://evil.example/github.com/acme/x",
                "https://github.com:acme@evil.example/acme/x",
                "file:///github.com/acme/x",
            ],
        ),
        ("https://git.example/*", ["https://me:key@git.example/x/y.git"], ["http://git.example/x", "git.example:x"]),
        ("file:///srv/git/*", ["/srv/git/x.git", "file:///srv/git/x"], ["/srv/git/../other", "https://srv/git/x"]),
    ]
    for pattern, allowed, refused in cases:
        rules = OrderRules(repositories=(pattern,))

        for url in allowed:
            assert rules.allows_repository(url), url
        for url in refused:
            assert not rules.allows_repository(url), url


def test_a_command_is_refused_alone_and_as_part_of_a_line() -> None:
    cases: list[str] = ["git push", "cd x && git  push origin", "echo $(git push -f)", "a\ngit push"]
    for line in cases:
        assert OrderRules(commands=("git push*",)).refuses_command(line) == "git push*", line
        assert OrderRules(commands=("git push*",)).refuses_command("git pull; echo git push") is None, line


def test_a_refusal_names_the_line_of_the_policy(tmp_path: Path) -> None:
    file = written(tmp_path, '# mine\n[orders]\nmodes = ["plan"]\norganizations = ["default"]\n')
    Policy(sandboxes=("bwrap",)).check_sandbox("bwrap")
    with pytest.raises(Precondition, match="does not allow the sandbox none"):
        Policy(sandboxes=("bwrap",)).check_sandbox("none")
    order = order_for("d" * 12, tmp_path, "")
    order = order.model_copy(update={"organization": "default"})

    with pytest.raises(Forbidden) as refused:
        load(file).check_order(order)

    assert refused.value.what == "this drone's policy does not allow orders in mode build"
    assert refused.value.why == f"orders.modes in {file}, line 3"
    planned = order.model_copy(update={"session": order.session.model_copy(update={"mode": "plan"})})
    load(file).check_order(planned)
    with pytest.raises(Forbidden, match="organization rivals"):
        load(file).check_order(planned.model_copy(update={"organization": "rivals"}))


def test_a_command_of_the_project_that_is_refused_refuses_its_orders(tmp_path: Path) -> None:
    order = order_for("d" * 12, tmp_path, "")
    project = order.project.model_copy(update={"setup": ("sudo make install",)})

    with pytest.raises(Forbidden, match=r"commands like `sudo \*`"):
        Policy(orders=OrderRules(commands=("sudo *",))).check_order(order.model_copy(update={"project": project}))


WRONG = {
    "orders": ('modes = ["destroy"]', "tools = []", 'mode = ["plan"]'),
    "repositories": ("extension = true", 'extensions = "yes"', "allow = []"),
    "network": ('access = "some"', "hosts = [1]", 'hosts = "a"'),
    "keys": ('A = "host"', "A = [1]", 'A = ["https://h/v1"]', 'A = ["ftp://h"]', 'A = ["*.h"]', 'A = ["h:port"]'),
    "when": ('hours = ["late"]', 'hours = ["Mon 25:00-26:00"]', 'free_memory = "much"', 'on_mains = "yes"'),
    "sandbox": ('allow = ["chroot"]',),
    "keep": ("run_days = 6", "mirror_days = 1.5", 'mirror_space = "0"'),
    "limits": ("ram = 1", "memory = -1", "processes = 3", "processes = true", "cpus = 0"),
    "spend": ("usd_per_day = nan", 'unpriced = ["a b"]', "usd_per_month = 3"),
}
"""By section: rules that cannot be meant."""
OTHERS = {
    "[network]\nports = [22]": 1,
    '[network]\naccess = "none"\nhosts = ["a"]': 3,
    '[network]\naccess = "host"\nhosts = ["a"]': 3,
    '[network]\naccess = "none"\n[sandbox]\nallow = ["none"]\n': 4,
}


def test_a_policy_that_is_wrong_is_refused_with_its_line(tmp_path: Path) -> None:
    top = ("version = 2", 'version = "1"', "[repository]", "network = 1", 'limits = "none"', "[limitz]")
    lines = {f"[{section}]\n{rule}": 2 for section, rules in WRONG.items() for rule in rules}
    for text, line in {**dict.fromkeys(top, 1), **lines, **OTHERS}.items():
        file = written(tmp_path, text)
        with pytest.raises(Precondition) as refused:
            load(file)
        assert refused.value.what.endswith(f"the policy file {file}, line {line}, cannot be loaded"), text
    for text in ("not toml", 'keys = "all"'):
        with pytest.raises(Precondition, match="cannot be loaded"):
            load(written(tmp_path, text))


def test_too_little_of_the_machine_is_named_with_its_setting(tmp_path: Path) -> None:
    assert When(free_memory=1, free_disk=1).lacking((tmp_path,)) == ("", "")
    assert When(free_memory=2**60).lacking((tmp_path,))[0] == "free_memory"
    assert When(free_disk=2**60).lacking((tmp_path,))[0] == "free_disk"
    assert When(free_cpus=10_000).lacking((tmp_path,))[0] == "free_cpus"


def test_the_doctor_says_what_the_owner_allows_and_how_limits_are_enforced(tmp_path: Path) -> None:
    owned = written(tmp_path, '[repositories]\nextensions = true\n[keys]\nKEY = ["h"]\n')
    assert check_policy(owned).found.startswith("allows extensions, key KEY ")
    policy = written(tmp_path, '[limits]\nmemory = "3 GiB"\nprocesses = 1234')
    confined, open_ = (Check("D-SANDBOX", state, "sandbox", "") for state in (OK, WARN))
    (check,) = check_limits(DroneHome(tmp_path), policy, "bwrap", {}, confined)

    assert check.found.startswith("memory 3.0GiB, processes 1,234 for the commands of a run")
    assert check.state is OK
    (unconfined,) = check_limits(DroneHome(tmp_path), policy, "none", {}, open_)
    held = not is_root() or {"memory", "processes"} <= available()
    assert unconfined.state is (OK if held else WARN)
    assert check.found.endswith("by cgroup") == ({"memory", "processes"} <= available())
    limited, unreadable = written(tmp_path, "[limits]\ncpus = 1"), "[limits]\ncpus = 0"
    (cpus,) = check_limits(DroneHome(tmp_path), limited, "bwrap", {}, confined)
    assert (cpus.state is FAIL) == ("cpus" not in available())
    assert check_limits(DroneHome(tmp_path), written(tmp_path, unreadable), "bwrap", {}, confined) == []


@pytest.mark.parametrize(
    ("ahead", "state", "found"),
    [
        (5, OK, "same as the server's"),
        (6, WARN, "6 s ahead of the server's"),
        (-20, WARN, "20 s behind the server's"),
        (61, FAIL, "61 s ahead of the server's"),
    ],
)
def test_a_clock_may_be_off_by_a_few_seconds(ahead: int, state: State, found: str) -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    check = check_clock(noon + timedelta(seconds=ahead), noon)
    assert (check.state, check.found) == (state, found)


@pytest.fixture
def limited(tmp_path: Path) -> Policy:
    return load(written(tmp_path, '[spend]\nusd_per_day = 2.5\nunpriced = ["http://127.0.0.1:8000"]\n'))


def test_costs_are_added_up_until_midnight(tmp_path: Path) -> None:
    clock = HandClock()
    spending = DaySpending(tmp_path / "spending", clock)
    assert spending.today() == 0

    spending.add(1.25)
    spending.add(0.000001)
    same_day = DaySpending(tmp_path / "spending", clock).today()
    clock.at += timedelta(days=1)

    assert (same_day, spending.today()) == (1.250001, 0)
    spending.add(0.5)
    assert spending.today() == 0.5
    (tmp_path / "spending").write_text(f"{clock.now().astimezone().date()} much\n" + "x" * 200)
    assert spending.today() == 0, "a damaged file is replaced"
    spending.add(2)
    assert spending.today() == 2


def test_no_cost_of_a_run_beside_others_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever adds holds the file from reading the sum to writing it."""
    spending, looks = DaySpending(tmp_path / "spending", HandClock()), []
    spending.add(1)

    def held(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def called(*given: Any) -> Any:
            with (tmp_path / "spending").open() as other, pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            looks.append(name)
            return real(*given)

        return called

    with monkeypatch.context() as here:
        for name in ("pread", "pwrite"):
            here.setattr(os, name, held(name))
        spending.add(2)
    assert (looks, spending.today()) == (["pread", "pwrite"], 3)


def test_a_call_is_refused_with_the_line_of_the_policy_once_the_limit_is_reached(limited: Policy) -> None:
    limited.check_spent(2.49)

    with pytest.raises(Forbidden) as refusal:
        limited.check_spent(2.5)

    assert refusal.value.what == "this drone has spent 2.50 of 2.50 USD today, as much as its policy allows"
    Policy().check_spent(1e9)
    assert (refusal.value.code, refusal.value.why) == ("E-POLICY-SPEND", f"spend.usd_per_day in {limited.file}, line 2")


def test_a_model_of_unknown_price_is_refused_unless_its_address_is_listed(limited: Policy) -> None:
    for api_base in (None, "http://127.0.0.1:8001/v1", "https://127.0.0.1:8000"):
        limited.check_unpriced("openai/mine", "http://127.0.0.1:8000/v1")
        Policy().check_unpriced("openai/mine", None)

        with pytest.raises(Forbidden) as refusal:
            limited.check_unpriced("openai/mine", api_base)

        assert "the price of openai/mine is unknown" in refusal.value.what, api_base
        assert str(refusal.value.next).startswith("on the drone: unpriced = ["), api_base

"""What the owner of a drone allows, and that nothing is allowed by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.installation.owner_rules import KeepRules
from drone.installation.policy import Policy, load, policy_file
from drone.sandbox.network import NetworkAccess
from shared.errors import Forbidden, Precondition

HERE = "http://127.0.0.1:8420"
ELSEWHERE = "https://fleet.example.org"


def written(directory: Path, text: str) -> Path:
    file = directory / "policy.toml"
    file.write_text(text)
    return file


def test_without_a_file_nothing_is_allowed(tmp_path: Path) -> None:
    assert load(tmp_path / "none.toml") == Policy(extensions=False, mcp_servers=False, file_urls=None, keys={})


def test_the_policy_lies_with_the_owners_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/xdg-me")

    assert policy_file({}) == Path("/etc/xdg-me/dronefleet/policy.toml")
    assert policy_file({"DRONE_POLICY": "/p.toml"}) == Path("/p.toml")


def test_a_policy_is_read_as_it_stands(tmp_path: Path) -> None:
    file = written(
        tmp_path, '[repositories]\nextensions = true\nfile_urls = false\n[keys]\nOPENAI_API_KEY = ["api.openai.com"]\n'
    )

    assert load(file) == Policy(extensions=True, file_urls=False, keys={"OPENAI_API_KEY": ("api.openai.com",)})


def test_how_long_work_is_kept_is_read_in_days_and_sizes(tmp_path: Path) -> None:
    assert load(tmp_path / "none.toml").keep == KeepRules(7, 30, 30, None, None)
    days = '[keep]\nrun_days = 14\nworkspace_days = "none"\nmirror_days = 1\n'
    spaces = 'workspace_space = "2 MiB"\nmirror_space = "none"\n'
    assert load(written(tmp_path, days + spaces)).keep == KeepRules(14, None, 1, 2 * 1024 * 1024, None)


def test_a_policy_that_cannot_be_understood_stops_the_drone(tmp_path: Path) -> None:
    cases: list[str] = [
        "not toml",
        "[repository]\nextensions = true",
        "[repositories]\nextension = true",
        '[repositories]\nextensions = "yes"',
        'keys = "all"',
        '[keys]\nA = "host"',
        '[network]\naccess = "some"',
        "[network]\nhosts = [1]",
        '[network]\nhosts = "a"',
        '[network]\naccess = "none"\nhosts = ["a"]',
        '[network]\naccess = "host"\nhosts = ["a"]',
        "[network]\nports = [22]",
        "network = 1",
        "[keys]\nA = [1]",
        '[keys]\nA = ["https://h/v1"]',
        '[keys]\nA = ["ftp://h"]',
        '[keys]\nA = ["*.h"]',
        '[keys]\nA = ["h:port"]',
    ]
    for text in cases:
        with pytest.raises(Precondition, match="cannot be loaded"):
            load(written(tmp_path, text))


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
    with pytest.raises(Forbidden, match=r"sending KEY to evil\.example"):
        policy.check_key("KEY", "https://evil.example/v1?api.example.org")
    with pytest.raises(Forbidden, match="OTHER"):
        policy.check_key("OTHER", "https://api.example.org/v1")
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


def test_the_network_of_commands_is_the_public_web_or_what_the_owner_writes(tmp_path: Path) -> None:
    assert Policy().network == NetworkAccess("public", chosen=False)
    listed = written(tmp_path, '[network]\naccess = "hosts"\nhosts = ["git.example", "10.0.0.5:3000"]')
    assert load(listed).network == NetworkAccess("hosts", ("git.example", "10.0.0.5:3000"), chosen=True)
    assert load(written(tmp_path, "[network]\n")).network == NetworkAccess("public", chosen=True)

"""Which orders the owner of a drone takes, when, and what their models may use."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from drone.installation.owner_rules import OrderRules, When
from drone.installation.owner_rules.times import read_hours, time_left
from drone.installation.policy import Policy, load
from shared.errors import Forbidden, Precondition
from tests.support.runs import order_for


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
    file = tmp_path / "policy.toml"
    file.write_text('# mine\n[orders]\nmodes = ["plan"]\norganizations = ["default"]\n')
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


def test_a_policy_that_is_wrong_is_refused_with_its_line(tmp_path: Path) -> None:
    cases: list[tuple[str, int, str]] = [
        ("version = 2\n", 1, "version 2 is not supported"),
        ('version = "1"\n', 1, "not supported"),
        ('[orders]\nmodes = ["destroy"]\n', 2, "orders.modes is invalid: expected some of plan"),
        ("[orders]\ntools = []\n", 2, "orders.tools is invalid"),
        ('[orders]\nmode = ["plan"]\n', 2, "[orders] may contain only organizations, modes, tools"),
        ('[when]\nhours = ["late"]\n', 2, "when.hours is invalid: expected local times"),
        ('[when]\nhours = ["Mon 25:00-26:00"]\n', 2, "when.hours is invalid"),
        ('[when]\n\nfree_memory = "much"\n', 3, "when.free_memory is invalid: expected a size"),
        ('[when]\non_mains = "yes"\n', 2, "when.on_mains is invalid: expected true or false"),
        ("[repositories]\nallow = []\n", 2, "repositories.allow must be a list of patterns"),
        ('[sandbox]\nallow = ["chroot"]\n', 2, "sandbox.allow is invalid"),
        ('[network]\naccess = "none"\n[sandbox]\nallow = ["none"]\n', 4, "contradicts network.access"),
        ("[limitz]\nx = 1\n", 1, "are allowed, not limitz"),
        ("[keep]\nrun_days = 6\n", 2, "keep.run_days is invalid: expected"),
        ("[keep]\nworkspace_days = 0\n", 2, "keep.workspace_days is invalid: expected"),
        ("[keep]\nmirror_days = 1.5\n", 2, "keep.mirror_days is invalid: expected"),
        ('[keep]\nmirror_space = "0"\n', 2, "keep.mirror_space is invalid: expected"),
        ('limits = "none"\n', 1, "[limits] may contain only memory, processes, cpus, file_size, disk"),
        ("[limits]\nram = 1\n", 2, "[limits] may contain only memory, processes, cpus, file_size, disk"),
        ('[limits]\nmemory = "much"\n', 2, "limits.memory is invalid: expected a size"),
        ("[limits]\nmemory = -1\n", 2, "limits.memory is invalid: expected a size"),
        ('[limits]\ndisk = "12"\n', 2, "limits.disk is invalid: expected a size"),
        ("[limits]\nprocesses = 3\n", 2, "limits.processes is invalid: expected a number of at least 16"),
        ("[limits]\nprocesses = true\n", 2, "limits.processes is invalid: expected a number of at least 16"),
        ("[limits]\ncpus = 0\n", 2, "limits.cpus is invalid: expected a number of cores"),
        ("[spend]\nusd_per_day = -1\n", 2, "usd_per_day"),
        ("[spend]\nusd_per_day = nan\n", 2, "usd_per_day"),
        ('[spend]\nunpriced = ["a b"]\n', 2, "unpriced"),
        ("[spend]\nusd_per_month = 3\n", 2, "[spend] may contain only"),
    ]
    for text, line, why in cases:
        file = tmp_path / "policy.toml"
        file.write_text(text)

        with pytest.raises(Precondition) as refused:
            load(file)

        assert refused.value.what == f"the policy file {file}, line {line}, cannot be loaded", text
        assert why in refused.value.why, text


def test_a_sandbox_that_the_owner_does_not_allow_stops_the_drone() -> None:
    Policy(sandboxes=("bwrap",)).check_sandbox("bwrap")
    with pytest.raises(Precondition, match="does not allow the sandbox none"):
        Policy(sandboxes=("bwrap",)).check_sandbox("none")


def test_too_little_of_the_machine_is_named_with_its_setting(tmp_path: Path) -> None:
    assert When(free_memory=1, free_disk=1).lacking((tmp_path,)) == ("", "")
    assert When(free_memory=2**60).lacking((tmp_path,))[0] == "free_memory"
    assert When(free_disk=2**60).lacking((tmp_path,))[0] == "free_disk"
    assert When(free_cpus=10_000).lacking((tmp_path,))[0] == "free_cpus"

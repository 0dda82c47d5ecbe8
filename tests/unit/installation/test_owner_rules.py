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

MONDAY, SATURDAY = 23, 28
"""Days of November 2026."""


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime.fromisoformat(f"2026-11-{day:02}T{hour:02}:{minute:02}:00+00:00")


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("Mon-Fri 20:00-07:00", [at(23, 20), at(24, 6, 59), at(28, 3)], [at(23, 19, 59), at(23, 6), at(28, 20)]),
        ("Sat,Sun", [at(28, 0), at(29, 23, 59)], [at(27, 23, 59), at(30, 0)]),
        ("09:00-17:00", [at(23, 9), at(29, 16, 59)], [at(23, 17), at(23, 8, 59)]),
        ("fri - mon 0:00-24:00", [at(27, 1), at(30, 23)], [at(24, 1)]),
    ],
)
def test_hours_are_read_as_they_are_written(text: str, inside: list[datetime], outside: list[datetime]) -> None:
    hours = read_hours(text)

    assert [hours.contain(moment) for moment in inside] == [True] * len(inside)
    assert [hours.contain(moment) for moment in outside] == [False] * len(outside)


@pytest.mark.parametrize(
    ("texts", "moment", "hours"),
    [
        (["Mon-Fri 20:00-07:00"], at(23, 21), 10),
        (["Mon-Fri 20:00-07:00"], at(24, 6, 30), 0.5),
        (["Mon-Fri 20:00-07:00"], at(24, 12), 0),
        (["Sat,Sun"], at(28, 6), 42),
        (["Fri 18:00-24:00", "Sat,Sun", "Mon 00:00-08:00"], at(27, 20), 60),
        (["0:00-24:00"], at(27, 20), 7 * 24 + 4),
    ],
)
def test_hours_that_follow_each_other_count_together(texts: list[str], moment: datetime, hours: float) -> None:
    assert time_left(tuple(map(read_hours, texts)), moment) == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("pattern", "allowed", "refused"),
    [
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
    ],
)
def test_a_repository_is_compared_with_what_its_address_leads_to(
    pattern: str, allowed: list[str], refused: list[str]
) -> None:
    rules = OrderRules(repositories=(pattern,))

    for url in allowed:
        assert rules.allows_repository(url), url
    for url in refused:
        assert not rules.allows_repository(url), url


@pytest.mark.parametrize("line", ["git push", "cd x && git  push origin", "echo $(git push -f)", "a\ngit push"])
def test_a_command_is_refused_alone_and_as_part_of_a_line(line: str) -> None:
    assert OrderRules(commands=("git push*",)).refuses_command(line) == "git push*"
    assert OrderRules(commands=("git push*",)).refuses_command("git pull; echo git push") is None


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


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
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
    ],
)
def test_a_policy_that_is_wrong_is_refused_with_its_line(tmp_path: Path, text: str, line: int, why: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)

    with pytest.raises(Precondition) as refused:
        load(file)

    assert refused.value.what == f"the policy file {file}, line {line}, cannot be loaded"
    assert why in refused.value.why


def test_a_sandbox_that_the_owner_does_not_allow_stops_the_drone() -> None:
    Policy(sandboxes=("bwrap",)).check_sandbox("bwrap")
    with pytest.raises(Precondition, match="does not allow the sandbox none"):
        Policy(sandboxes=("bwrap",)).check_sandbox("none")


def test_too_little_of_the_machine_is_named_with_its_setting(tmp_path: Path) -> None:
    assert When(free_memory=1, free_disk=1).lacking((tmp_path,)) == ("", "")
    assert When(free_memory=2**60).lacking((tmp_path,))[0] == "free_memory"
    assert When(free_disk=2**60).lacking((tmp_path,))[0] == "free_disk"
    assert When(free_cpus=10_000).lacking((tmp_path,))[0] == "free_cpus"

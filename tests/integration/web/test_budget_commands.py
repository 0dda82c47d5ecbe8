"""`fleet budget` at a real server: what people type, and what they are shown."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.support.command_tree import invoke
from tests.support.fleet import Api
from tests.support.spending import spend


def fleet(api: Api, *words: str) -> subprocess.CompletedProcess[str]:
    return invoke("fleet", *words, env={"FLEET_URL": api.url, "FLEET_API_TOKEN": api.token})


@pytest.fixture
def busy(api: Api) -> Api:
    """A fleet on whose project `demo` 12.5 USD were spent."""
    api.add_work()
    run = api.add_drone().take(api.submit())
    spend(api.core, run.id, 12.5, final=False)
    return api


def test_a_budget_is_set_shown_listed_and_removed(busy: Api) -> None:
    made = fleet(busy, "budget", "set", "project", "demo", "$50", "--per", "total")
    assert made.returncode == 0
    assert made.stdout.splitlines() == [
        "budget    project demo, in total",
        "state     ok",
        "limit     $50.00",
        "spent     $12.50 (25 %)",
        "reserved  $0.00",
        "left      $37.50",
        "refuses   model calls that may cost more than $37.50",
    ]
    fleet(busy, "budget", "set", "project", "demo", "10", "--per", "month", "--zone", "Asia/Kathmandu")
    assert made.stdout in fleet(busy, "budget", "show", "project", "demo").stdout
    shown = json.loads(fleet(busy, "budget", "show", "project", "demo", "--json").stdout)
    assert [(each["per"], each["zone"]) for each in shown["budgets"]] == [("month", "Asia/Kathmandu"), ("total", "UTC")]
    head, month, total = fleet(busy, "budget", "ls").stdout.splitlines()
    assert head.split()[:5] == ["KIND", "NAME", "PER", "LIMIT", "SPENT"]
    assert month.split()[:3] == ["project", "demo", "month"]
    assert total.split()[:4] == ["project", "demo", "total", "$50.00"]
    listed = json.loads(fleet(busy, "budget", "ls", "--json").stdout)
    # The forecast changes with each second.
    assert [{**each, "forecast_usd": 0} for each in listed] == [
        {**each, "forecast_usd": 0} for each in shown["budgets"]
    ]
    assert "--yes" in fleet(busy, "budget", "rm", "project", "demo").stderr
    removed = fleet(busy, "budget", "rm", "project", "demo", "--per", "month", "--yes")
    assert removed.stderr == "budget of project demo per month removed\n"
    assert len(json.loads(fleet(busy, "budget", "ls", "--json").stdout)) == 1


def test_a_budget_below_what_is_spent_is_never_shown_as_a_negative_rest(busy: Api) -> None:
    made = fleet(busy, "budget", "set", "organization", "default", "2", "--per", "day").stdout
    assert "left      lowered below what is spent: $12.50 of $2.00" in made
    assert "-" not in made.split("period")[0]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("project", "demo", "0", "--per", "day"), 2, "fleet budget rm"),
        (("project", "demo", "-5", "--per", "day"), 2, "a budget cannot be negative: -5 USD given"),
        (("project", "demo", "nan", "--per", "day"), 2, "usd: must be a number"),
        (("project", "demo", "1e999", "--per", "day"), 2, "usd: must be a number"),
        (("project", "demo", "lots", "--per", "day"), 2, "usd: must be a number"),
        (("project", "demo", "5", "--per", "week"), 2, "per: must be 'day', 'month' or 'total'"),
        (("project", "demo", "5"), 2, "per: is required"),
        (("projet", "demo", "5", "--per", "day"), 2, "did you mean project?"),
        (("project", "dmeo", "5", "--per", "day"), 3, "did you mean demo?"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(busy: Api, words: tuple[str, ...], code: int, said: str) -> None:
    refused = fleet(busy, "budget", "set", *words)
    assert refused.returncode == code
    assert said in refused.stderr
    assert fleet(busy, "budget", "ls").stderr.startswith("no budgets: spending is not limited")


def test_the_option_of_a_project_is_the_same_budget_and_none_removes_it(busy: Api) -> None:
    edited = json.loads(fleet(busy, "project", "edit", "demo", "--budget", "$20/day", "--json").stdout)
    assert edited["budget_usd_day"] == 20
    shown = json.loads(fleet(busy, "budget", "show", "project", "demo", "--json").stdout)
    assert [(each["limit_usd"], each["spent_usd"]) for each in shown["budgets"]] == [(20, 12.5)]
    assert fleet(busy, "project", "edit", "demo", "--budget", "0").returncode == 2
    assert (
        json.loads(fleet(busy, "project", "edit", "demo", "--budget", "none", "--json").stdout)["budget_usd_day"]
        is None
    )
    assert fleet(busy, "budget", "show", "project", "demo").returncode == 3

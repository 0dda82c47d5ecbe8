"""`fleet budget`, `price` and `cost` at a real server: what people type, and what they are shown."""

from __future__ import annotations

import csv
import io
import json
import subprocess

from control_plane.db.runs import Run
from tests.support.command_tree import invoke
from tests.support.fleet import Api
from tests.support.spending import reserve, spend

MODEL = "openrouter/openai/gpt-x"


def fleet(api: Api, *words: str) -> subprocess.CompletedProcess[str]:
    return invoke("fleet", *words, env={"FLEET_URL": api.url, "FLEET_API_TOKEN": api.token})


def test_a_budget_is_set_shown_listed_and_removed_also_as_an_option_of_its_project(api: Api) -> None:
    api.add_work()
    spend(api.core, api.add_drone().take(api.submit()).id, 12.5, final=False)
    made = fleet(api, "budget", "set", "project", "demo", "$50", "--per", "total")
    lines = dict(line.split(maxsplit=1) for line in made.stdout.splitlines())
    assert (lines["limit"], lines["spent"], lines["left"]) == ("$50.00", "$12.50 (25 %)", "$37.50")
    fleet(api, "project", "edit", "demo", "--budget", "$20/day")
    shown = json.loads(fleet(api, "budget", "show", "project", "demo", "--json").stdout)["budgets"]
    assert [(each["per"], each["limit_usd"], each["spent_usd"]) for each in shown] == [
        ("day", 20, 12.5),
        ("total", 50, 12.5),
    ]
    _, day, total = fleet(api, "budget", "ls").stdout.splitlines()
    assert (day.split()[:3], total.split()[3]) == (["project", "demo", "day"], "$50.00")
    assert "--yes" in fleet(api, "budget", "rm", "project", "demo").stderr
    assert fleet(api, "budget", "rm", "project", "demo", "--per", "total", "--yes").returncode == 0
    fleet(api, "project", "edit", "demo", "--budget", "none")
    assert fleet(api, "budget", "show", "project", "demo").returncode == 3


def test_what_is_wrong_is_told_with_what_to_do(api: Api) -> None:
    api.add_work()
    for words, code, said in (
        ("budget set project demo 0 --per day", 2, "fleet budget rm"),
        ("budget set project demo -5 --per day", 2, "-5 USD"),
        ("budget set project demo nan --per day", 2, "usd"),
        ("budget set project demo 5 --per week", 2, "'day', 'month' or 'total'"),
        ("budget set projet demo 5 --per day", 2, "project?"),
        ("budget set project dmeo 5 --per day", 3, "demo?"),
        ("price set m --input nan --output 1", 2, "input"),
        ("price set m --input 1", 2, "output"),
        ("cost --csv --json", 2, "--json"),
        ("cost --by hour", 2, "'day'"),
        ("cost --zone Mars", 2, "Mars"),
    ):
        refused = fleet(api, *words.split())
        assert (refused.returncode, said in refused.stderr) == (code, True), refused.stderr
    assert json.loads(fleet(api, "budget", "ls", "--json").stdout) == []


def test_a_price_is_set_shown_listed_and_removed_by_the_name_of_its_model(api: Api) -> None:
    made = fleet(api, "price", "set", MODEL, "--input", "$2.5", "--output", "10", "--cache-read", "0.25", "--json")
    document = json.loads(made.stdout)
    assert (document["model"], document["input_usd"], document["cache_write_usd"]) == (MODEL, 2.5, None)
    assert json.loads(fleet(api, "price", "show", MODEL, "--json").stdout) == document
    assert fleet(api, "price", "ls").stdout.splitlines()[1].split() == [MODEL, "2.5", "10.0", "0.25", "-", "0.0"]
    assert fleet(api, "price", "rm", MODEL, "--yes").returncode == 0
    assert fleet(api, "price", "show", MODEL).returncode == 3


def test_cost_is_a_table_with_a_total_and_exact_in_json_and_in_csv_as_rfc_4180_says(api: Api) -> None:
    api.add_work()
    drone = api.add_drone(concurrency=3)
    ended, active, unknown = (drone.take(api.submit()) for _ in range(3))
    spend(api.core, ended.id, 0.123456789)
    reserve(api.core, active.id, 2)
    spend(api.core, active.id, 0.5, final=False)
    with api.core.database.write() as db:
        db.get_one(Run, unknown.id).cost_usd = None

    shown = fleet(api, "cost", "--by", "project")
    assert [line.split() for line in shown.stdout.splitlines()[1:]] == [
        ["demo", "$0.6235", "$1.5000", "2"],
        ["total", "$0.6235", "$1.5000", "-"],
    ]
    assert "1 run" in shown.stderr
    (document,) = json.loads(fleet(api, "cost", "--json").stdout)
    assert (document["by"], document["spent_usd"], document["reserved_usd"]) == ("day", 0.623456789, 1.5)
    assert list(csv.reader(io.StringIO(fleet(api, "cost", "--csv").stdout))) == [
        ["day", "spent_usd", "reserved_usd", "runs", "unknown_costs"],
        [document["name"], "0.623456789", "1.50", "2", "1"],
    ]

"""`fleet price` at a real server; names of models contain slashes."""

from __future__ import annotations

import json
import subprocess

from tests.support.command_tree import invoke
from tests.support.fleet import Api

MODEL = "openrouter/openai/gpt-x"


def fleet(api: Api, *words: str) -> subprocess.CompletedProcess[str]:
    return invoke("fleet", "price", *words, env={"FLEET_URL": api.url, "FLEET_API_TOKEN": api.token})


def test_a_price_is_set_shown_listed_and_removed_by_the_name_of_its_model(api: Api) -> None:
    made = fleet(api, "set", MODEL, "--input", "$2.5", "--output", "10", "--cache-read", "0.25", "--json")
    document = json.loads(made.stdout)
    assert (document["model"], document["input_usd"], document["cache_write_usd"]) == (MODEL, 2.5, None)
    assert json.loads(fleet(api, "show", MODEL, "--json").stdout) == document
    lines = [line.split(maxsplit=1) for line in fleet(api, "show", MODEL).stdout.splitlines()]
    assert ["model", MODEL] in lines
    assert fleet(api, "ls").stdout.splitlines()[1].split() == [MODEL, "2.5", "10.0", "0.25", "-", "0.0"]
    removed = fleet(api, "rm", MODEL, "--yes")
    assert removed.stderr == f"price of {MODEL} removed; that of LiteLLM's list applies again\n"
    assert fleet(api, "show", MODEL).returncode == 3


def test_what_is_no_price_is_told_before_anything_is_stored(api: Api) -> None:
    for words in (("--input", "nan", "--output", "1"), ("--input", "-1", "--output", "1"), ("--input", "1"), ()):
        assert fleet(api, "set", MODEL, *words).returncode == 2
    assert fleet(api, "ls").stderr.startswith("no prices set")

"""The commands of `fleet`, in this process, at a running server: documents and refusals."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from control_plane.cli.main import app
from control_plane.contract.declarations import projects
from control_plane.contract.declarations.projects import ProjectRequest
from shared.events import ProjectCheckStep, ProviderCheckStep
from tests.support import hooks
from tests.support.command_lines import CommandLine
from tests.support.fleet import Api


@pytest.fixture
def fleet(api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """`fleet` as an admin of the server."""
    for name in [each for each in os.environ if each.startswith("FLEET_")]:
        monkeypatch.delenv(name)
    for name, value in {"FLEET_URL": api.url, "FLEET_API_TOKEN": api.token, "FLEET_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    return CommandLine(app, capsys, monkeypatch)


def test_json_is_one_document_and_a_list_for_lists(api: Api, fleet: CommandLine) -> None:
    api.add_work()
    api.add_drone("mila")
    lists = ("orders", "drones", "token ls", "api-token ls", "provider ls", "project ls")
    documents = ("token create", "api-token create --role viewer", "drone show mila", "doctor")
    kinds = {words: type(fleet(*words.split(), "--json").document) for words in (*lists, *documents)}
    assert kinds == {**dict.fromkeys(lists, list), **dict.fromkeys(documents, dict)}


def test_a_new_token_is_printed_alone_and_lives_as_long_as_typed(fleet: CommandLine) -> None:
    prefixes = {"token add": "fj_", "api-token add --role viewer": "fa_", "pool add a": "fj_", "pool rotate a": "fj_"}
    printed = {words: fleet(*words.split()).stdout for words in prefixes}
    assert {words: text[:3] for words, text in printed.items()} == prefixes
    assert {len(text.splitlines()) for text in printed.values()} == {1}
    for words in ("token add", "api-token add --role viewer", "pool add b", "pool rotate b"):
        made = fleet(*words.split(), "--expires", "2d", "--json").document
        lasts = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
        assert timedelta(days=1) < lasts <= timedelta(days=2), words


def test_wrong_use_is_one_clear_refusal_with_its_exit_code(api: Api, fleet: CommandLine) -> None:
    api.add_work()
    submit = ("submit", "Do it", "--project", "demo")
    refused = {
        ("submit", "Do it", "--project", "nope"): (3, "nope"),
        (*submit, "--label", "gpu"): (2, "label"),
        (*submit, "--cost-limit", "-1"): (2, "cost_limit"),
        (*submit, "--ticket", "PAYM-12\nFleet-Order: x"): (2, "ticket"),
        ("submit",): (2, "prompt"),
        ("follow", "0123456789ab"): (3, "0123456789ab"),
        ("patch", "0123456789ab"): (3, "0123456789ab"),
        ("orders", "--status", "dreaming"): (2, "dreaming"),
        ("orders", "--org", "nope"): (3, "nope"),
        ("--org", "nope", "orders"): (2, "--org"),
        ("token", "create", "--expires", "soon"): (2, "soon"),
        ("provider", "add", "scripted", "--model", "openai/x", "--no-key"): (4, "scripted"),
        ("provider", "add", "x" * 10_000, "--model", "openai/x", "--no-key"): (2, "name"),
        ("schedule", "add", "x"): (2, "cron: is required; task.title: is required"),
        ("agent", "add", "lead", "--instructions", "nowhere.md"): (3, "nowhere.md"),
    }
    wrong = {}
    for words, (code, word) in refused.items():
        done = fleet(*words)
        told = done.stderr.startswith("error: ") and word in done.stderr.lower() and len(done.stderr) < 2000
        if (done.returncode, done.stdout, told) != (code, "", True):
            wrong[words] = done
    assert wrong == {}


def test_a_file_of_five_megabytes_is_not_sent_and_is_named(fleet: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "lead.md").write_bytes(b"x" * 5_000_000)
    done = fleet("agent", "add", "broken", "--instructions", str(tmp_path / "lead.md"), "--json")
    error = json.loads(done.stderr)
    assert (done.returncode, done.stdout, error["code"]) == (2, "", "E-FILE-SIZE")
    assert "lead.md" in error["what"]


def test_without_a_server_it_is_no_connection_and_with_a_wrong_token_no_entry(
    api: Api, fleet: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEET_API_TOKEN", "fa_wrong")
    assert fleet("orders").returncode == 6
    monkeypatch.setenv("FLEET_URL", "http://127.0.0.1:9")
    assert fleet("orders").returncode == 5


def test_the_only_project_is_the_default_and_orders_are_named_in_short(api: Api, fleet: CommandLine) -> None:
    without, nothing = fleet("submit", "Do it"), fleet("show", "@last")
    assert (without.returncode, "E-PROJECT-NONE" in without.stderr) == (2, True)
    assert (nothing.returncode, "E-ORDER-LAST" in nothing.stderr) == (3, True)

    api.add_work()
    first, second = (fleet("submit", text).stdout.strip() for text in ("Do it", "Do it again"))
    shown = {words: fleet(*words, "--json").document for words in (("show", "@last"), ("show", first[:11]))}
    session = shown["show", first[:11]]["session"]
    assert [each["id"] for each in shown.values()] == [second, first]
    assert fleet("cancel", "@last", "--json").document["id"] == second
    more = fleet("submit", "More", "--session", session[:11], "--json").document
    assert more["session"] == session
    listed = fleet("orders").stdout.splitlines()
    assert [line.split()[0] for line in listed[1:]] == [more["id"], second, first]
    assert "Do it again" in listed[2]

    api.client.call(projects.ADD, ProjectRequest(slug="other", git_url="https://git.example/other.git"))
    several = fleet("submit", "Do it")
    assert (several.returncode, "demo, other" in several.stderr) == (2, True)


def test_a_check_that_no_drone_takes_ends_the_wait_with_1_and_its_state(api: Api, fleet: CommandLine) -> None:
    added = fleet("provider", "add", "main", "--model", "openai/x", "--no-key")
    assert (added.returncode, "unchecked: no drone is registered yet" in added.stdout) == (0, True)
    tried = fleet("provider", "test", "main", "--timeout", "0.1")
    assert (tried.returncode, tried.stdout) == (1, "")
    assert "✗ provider main is not checked yet: no drone is registered yet" in tried.stderr
    tried = fleet("provider", "test", "main", "--timeout", "0", "--json")
    assert (tried.returncode, tried.document["check"]["state"]) == (1, "unchecked")
    assert fleet("orders", "--json").document == []


def test_what_was_saved_and_does_not_work_ends_with_1_and_what_to_do_and_the_doctor_fails(
    api: Api, fleet: CommandLine
) -> None:
    mila, commands = api.add_drone(), {}
    provider = ("dead", "--model", "openai/x", "--no-key"), ("dead", "--rpm", "9"), ProviderCheckStep
    project = ("gone", "--git-url", "https://git.example/gone.git"), ("gone", "--name", "Gone"), ProjectCheckStep
    for kind, (add, edit, failed) in {"provider": provider, "project": project}.items():
        added = fleet(kind, "add", *add, "--json")
        assert (added.returncode, added.document["check"]["state"]) == (0, "unchecked")
        run = mila.take({"id": added.document["check"]["order"]})
        advice = f"fleet {kind} show {add[0]}"
        run.step(failed(ok=False, summary=f"The {kind} is gone.", code="E-CHECK-PORT", next=advice))
        run.ends()
        commands[kind, "edit"] = fleet(kind, "edit", *edit, "--json")
        commands[kind, "plain"] = fleet(kind, "edit", *edit)
        assert advice in commands[kind, "edit"].stderr
        assert f"failed: The {kind} is gone." in commands[kind, "plain"].stdout
    assert {each.returncode for each in commands.values()} == {1}
    doctor = fleet("doctor", "--json")
    found = {each["code"]: each for each in doctor.document["checks"]}
    shown = [(found[code]["state"], found[code]["fix"]) for code in ("D-PROVIDERS", "D-PROJECTS")]
    assert doctor.returncode == 1
    assert shown == [("FAIL", "fleet provider show dead"), ("FAIL", "fleet project show gone")]


def test_a_bad_row_of_a_batch_starts_nothing_unless_it_is_to_be_skipped(
    api: Api, fleet: CommandLine, tmp_path: Path
) -> None:
    api.add_work()
    file, template = tmp_path / "issues.csv", tmp_path / "fix.j2"
    file.write_text('\ufeffid;title\none;"Sums are\nwrong"\ntwo\nthree;Sums\n')
    template.write_text("Fix this: {{ title }}")
    words = ("batch", "run", str(file), "--template", str(template), "--project", "demo", "--detach")
    refused = fleet(*words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "1 of 3 rows cannot be submitted, so nothing was started" in refused.stderr
    assert "line 4 has 1 values for 2 columns" in refused.stderr
    assert fleet("batch", "ls", "--json").document == []

    done = fleet(*words, "--skip-bad")
    assert (done.returncode, "skipped: line 4" in done.stderr) == (0, True)
    assert fleet("batch", "show", "issues", "--json").document["total"] == 2
    assert fleet("batch", "results", "issues", "--format", "csv").stdout.startswith("id,state,resolved,")


def test_schedules_triggers_and_webhooks_show_what_they_do_and_no_secret_twice(
    api: Api, fleet: CommandLine, tmp_path: Path
) -> None:
    api.add_work()
    (tmp_path / "told.md").write_text("Update what is old.\n")
    texts = ("--title", "Tidy {{date}}", "--description-file", str(tmp_path / "told.md"), "--assignee", "user")
    times = ("--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
    added = fleet("schedule", "add", "nightly", *times, *texts).stdout
    task = fleet("schedule", "run", "nightly", "--json").document
    assert added.count(" UTC\n") == 5
    assert (task["title"][:7], task["description"]) == ("Tidy 20", "Update what is old.")
    assert "off" in fleet("schedule", "edit", "nightly", "--off").stdout
    assert fleet("schedule", "delete", "nightly", "--yes", "--json").document["last_task"] == task["id"]

    trigger = fleet("trigger", "create", "issues", "--kind", "github", "--assignee", "user", "--json").document
    request = hooks.github(trigger["secret"])
    answer = httpx.post(trigger["url"], content=request.body, headers=request.headers, trust_env=False).json()
    shown = fleet("trigger", "show", "issues").stdout
    assert (answer["outcome"], answer["task"] in shown, trigger["secret"] in shown) == ("task", True, False)

    webhook = ("webhook", "add", "chat", "--url", "https://receiver.invalid/x", "--event", "task.done")
    assert "whsec_" in fleet(*webhook).stdout
    tried = fleet("webhook", "test", "chat")
    assert (tried.returncode, tried.stdout[:39]) == (1, "rejected: receiver.invalid could not be")
    [delivery] = fleet("webhook", "deliveries", "chat", "--json").document
    assert (delivery["event"], delivery["attempts"]) == ("fleet.test", 1)
    assert "whsec_" not in fleet("webhook", "show", "chat").stdout

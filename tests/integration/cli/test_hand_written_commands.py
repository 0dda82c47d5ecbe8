"""Hand-written commands at a real server, called in this process: what they send, print and refuse."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane.cli.batch_follow import follow_batch
from control_plane.cli.main import app
from control_plane.contract.client import fleet
from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import agents, batches, orders, organizations, plans, steering
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.batches import BatchRequest
from control_plane.contract.declarations.organizations import OrganizationRequest
from control_plane.contract.declarations.steering import AnswerRequest
from control_plane.contract.declarations.tokens import CREATE_JOIN, JoinTokenRequest
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.groups import OrderGroup
from shared.clock import SystemClock
from shared.events import ApprovalStep, DecisionStep
from shared.plans import AgentPlan, PlanPoint
from tests.support.batches import rows_of
from tests.support.command_lines import CommandLine, ListedClient, Terminal
from tests.support.fleet import Api

Doc = dict[str, Any]
Cli = Callable[..., tuple[int, str, str]]
EDITED = "# Notes, shorter\n\n1. [x] Write first.txt\n"


@pytest.fixture
def cli(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """`fleet` as an admin: returns exit code, stdout and stderr. No agent begins a task by itself."""
    api.add_work()
    for name, boss in (("lead", None), ("backend", "lead")):
        api.client.call(agents.ADD, AgentRequest(name=name, instructions="You work.", boss=boss))
    api.client.call(organizations.PAUSE, name="default")
    for name, value in (("URL", api.url), ("API_TOKEN", api.token), ("HOME", str(tmp_path))):
        monkeypatch.setenv(f"FLEET_{name}", value)
    line = CommandLine(app, capsys, monkeypatch)

    def typed(*words: str, stdin: str | bytes | Terminal = "") -> tuple[int, str, str]:
        done = line(*words, stdin=stdin)
        return done.returncode, done.stdout, done.stderr

    return typed


def test_every_text_from_a_pipe_is_read_in_its_encoding_or_refused_in_one_sentence(cli: Cli, api: Api) -> None:
    order = api.add_drone().take(api.submit()).order_id
    task_id = document(cli("task", "create", "it", "--assignee", "user", "--json"))["id"]
    commands = [("submit", "-"), *((verb, order, "-") for verb in ("say", "answer")), ("comment", task_id, "-")]
    commands.append(("task", "create", "it", "--description-file", "-"))
    for words in commands:
        code, out, err = cli(*words, stdin=b"Fix the caf\xe9")
        assert (code, out, "[E-FILE-TEXT]" in err) == (2, "", True), words
    prompt = "Fix the café\n".encode("utf-16")
    submitted = document(cli("submit", "-", "--project", "demo", "--json", stdin=prompt))
    said = document(cli("comment", task_id, "-", "--json", stdin="Käse\r\n".encode("utf-8-sig")))
    assert (submitted["prompt"], said["text"]) == ("Fix the café", "Käse")


def document(done: tuple[int, str, str]) -> Doc:
    code, out, err = done
    assert code == 0, err
    return dict(json.loads(out))


def test_every_command_of_tasks_speaks_json(cli: Cli) -> None:
    """S-123."""
    task = document(cli("task", "create", "Mend it", "--assignee", "user", "--json"))
    task_id = task["id"]
    assert (task["status"], task["assignee"], task["description"]) == ("open", "user", "Mend it")
    for words, wanted in (
        (("task", "show", task_id), {"status": "open"}),
        (("comment", task_id, "Just a remark."), {"author": "user", "kind": "comment"}),
        (("task", "comment", task_id, "To @lead please."), {"text": "To @lead please."}),
        (("task", "assign", task_id, "user"), {"assignee": "user"}),
        (("task", "done", task_id), {"status": "done"}),
        (("task", "reopen", task_id), {"status": "open", "assignee": "user"}),
        (("task", "done", task_id), {"status": "done"}),
        (("task", "retry", task_id, "--assign", "backend"), {"status": "open", "assignee": "backend"}),
        (("task", "cancel", task_id, "--reason", "no need"), {"status": "canceled"}),
        (("status",), {"organization": "default", "paused": True}),
    ):
        printed = document(cli(*words, "--json"))
        assert {name: printed[name] for name in wanted} == wanted, words
    assert [each["id"] for each in json.loads(cli("task", "ls", "--json")[1])] == [task_id]
    assert json.loads(cli("run", "ls", "--task", task_id, "--json")[1]) == []
    code, out, _ = cli("task", "follow", task_id, "--json")
    assert (code, json.loads(out.splitlines()[-1])["id"]) == (1, task_id)


def test_a_new_tasks_id_is_alone_on_stdout_and_its_description_comes_from_an_option_a_file_or_a_pipe(
    cli: Cli, api: Api, tmp_path: Path
) -> None:
    file = tmp_path / "what.md"
    file.write_text("# What\n\nAll of it, mit Umläuten.\n", encoding="utf-8")
    given = {
        "Plainly.": cli("task", "create", "One", "--description", "Plainly."),
        "# What\n\nAll of it, mit Umläuten.": cli("task", "create", "Two", "--description-file", str(file)),
        "From a pipe.": cli("task", "create", "Three", "--description-file", "-", stdin="From a pipe.\n"),
    }
    ids = {wanted: out.strip() for wanted, (_, out, _) in given.items()}
    assert [api.client.show_task(each)["description"] for each in ids.values()] == list(ids)
    assert all(f"fleet task follow {ids[wanted]}" in err for wanted, (_, _, err) in given.items())


def test_what_only_the_command_line_can_find_wrong_is_refused_by_its_code(cli: Cli, api: Api, tmp_path: Path) -> None:
    order = api.add_drone().take(api.submit()).order_id
    missing, binary = str(tmp_path / "missing"), tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    wrong = {
        ("task", "create", "it", "--description", "a", "--description-file", "b"): (2, "E-USAGE"),
        ("task", "create", "it", "--description-file", missing): (3, "E-FILE-404"),
        ("task", "create", "it", "--description-file", str(binary)): (2, "E-FILE-TEXT"),
        ("task", "show", "../orders"): (3, "E-HTTP-404"),
        ("run", "ls"): (2, "E-USAGE"),
        ("orders", "--watch"): (2, "E-WATCH"),
        ("drones", "--watch"): (2, "E-WATCH"),
        ("say", order, ""): (2, "E-SAY-EMPTY"),
        ("session", "new"): (2, "E-REQUEST"),
        ("trajectory", "0" * 12): (3, "E-ORDER-404"),
        ("trajectory", order, "--run", "none"): (3, "E-ORDER-RUN"),
        ("trajectory", order, "--output", f"{missing}/file"): (2, "E-OUTPUT"),
        ("export", "0" * 12): (3, "E-ORDER-404"),
        ("export", order, "--output", f"{missing}/file"): (2, "E-OUTPUT"),
        ("organization", "import", missing): (3, "E-FILE-404"),
        ("organization", "rm", "default"): (2, "E-NOT-CONFIRMED"),
        ("keys", "rotate", "drone", "mila", "--force"): (2, "E-NOT-CONFIRMED"),
        ("api-token", "add", "--bootstrap", "--role", "viewer"): (2, "E-USAGE"),
        ("api-token", "add", "--bootstrap", "--role", "admin", "--expires", "1h"): (2, "E-USAGE"),
        ("api-token", "add", "--bootstrap", "--org", "payments"): (2, "E-USAGE"),
    }
    got = {words: cli(*words, "--json") for words in wrong}
    found = {words: (code, json.loads(err)["code"]) for words, (code, _, err) in got.items()}
    assert {words: each for words, each in found.items() if each != wrong[words]} == {}
    assert {out for _, out, _ in got.values()} == {""}

    plain, file = cli("trajectory", order), tmp_path / "run.traj.json"
    assert cli("trajectory", order, "--output", str(file))[:2] == (0, "")
    assert document(plain) == json.loads(file.read_text())


def test_an_exported_order_is_a_file_with_the_orders_id_as_its_name(
    cli: Cli, api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = api.add_drone().take(api.submit()).order_id
    monkeypatch.chdir(tmp_path)
    made = document(cli("export", "@last", "--json"))
    file, given = tmp_path / f"{order}.html", tmp_path / "given.html"
    assert (made["file"], made["bytes"]) == (str(file), file.stat().st_size)
    assert cli("export", order, "--output", str(given))[:2] == (0, "")
    code, out, _ = cli("export", order, "--output", "-")
    # Each says when it was exported, to the minute.
    assert (code, out[:15], given.read_text()[:15]) == (0, "<!doctype html>", "<!doctype html>")


def test_the_audit_log_is_listed_if_no_command_is_named(cli: Cli) -> None:
    listed = json.loads(cli("audit", "ls", "--outcome", "changed", "--json")[1])
    assert (json.loads(cli("audit", "--outcome", "changed", "--json")[1]), bool(listed)) == (listed, True)
    assert cli("audit", "none")[0] == 2


def test_the_keys_of_all_drones_are_those_of_the_organizations_own(cli: Cli, api: Api) -> None:
    """An administrator of all organizations also sees whose the others are that serve it."""
    api.client.call(organizations.ADD, OrganizationRequest(name="payments"))
    with FleetClient(api.url, api.token, "payments") as payments:
        token = payments.call(CREATE_JOIN, JoinTokenRequest(serves=["default"]))["token"]
    api.add_drone("guest", token), api.add_drone("own")
    assert [drone["name"] for drone in json.loads(cli("drones", "--json")[1])] == ["guest", "own"]
    code, out, err = cli("keys", "rotate", "drone", "--all", "--json")
    assert (code, [drone["name"] for drone in json.loads(out or "[]")]) == (0, ["own"]), err


def test_only_the_limit_at_which_an_order_waits_is_raised(cli: Cli, api: Api) -> None:
    drone = api.add_drone(concurrency=2)
    asks, limited = (drone.take(api.submit()) for _ in range(2))
    asks.asks("c1", "shell", "Deletes files")
    why = "The limit of 2 steps is reached"
    limited.step(ApprovalStep(call_id="steps-1", tool="", why=why, about="limit", limit="steps"))
    wrong = {
        ("approve", asks.order_id, "--raise", "1"): "E-APPROVAL-RAISE",
        ("deny", asks.order_id, "--finish"): "E-APPROVAL-FINISH",
        ("approve", asks.order_id, "--raise", "-1"): "E-REQUEST",
        ("approve", limited.order_id, "--raise", "5"): "E-APPROVAL-RAISE",
        ("deny", limited.order_id, "--finish"): "E-APPROVAL-FINISH",
    }
    refused = {words: cli(*words, "--json") for words in wrong}
    assert {words: json.loads(err)["code"] for words, (_, _, err) in refused.items()} == wrong
    assert {code for code, _, _ in refused.values()} == {2}
    assert "--raise-steps" in refused["approve", limited.order_id, "--raise", "5"][2]

    before = api.client.call(orders.SHOW, order_id=limited.order_id)
    document(cli("approve", limited.order_id, "--raise-steps", "5", "--json"))
    after = api.client.call(orders.SHOW, order_id=limited.order_id)
    assert after["limits"]["max_iterations"]["value"] == before["limits"]["max_iterations"]["value"] + 5


def test_what_is_answered_at_a_terminal_is_the_question_that_was_shown_and_no_later_one(cli: Cli, api: Api) -> None:
    run = api.add_drone().take(api.submit())
    run.step(asked("c1"))

    def meanwhile() -> None:
        api.client.call(steering.ANSWER, AnswerRequest(text="two"), order_id=run.order_id)
        run.step(DecisionStep(about="question", call_id="c1", approved=True))
        run.step(asked("c2"))
        api.submit("Another")

    wrong = cli("answer", "@last", "--call", "c2", stdin=Terminal("1\n"))
    assert (wrong[0], "[E-ANSWER-TEXT]" in wrong[2]) == (2, True)
    late = cli("answer", "@last", stdin=Terminal("1\n", meanwhile))
    assert (late[0], "[E-ANSWER-ANSWERED]" in late[2]) == (4, True)
    assert api.client.call(orders.SHOW, order_id=run.order_id)["waiting_for"]["call_id"] == "c2"

    def again() -> None:
        run.step(asked("c2", "Which language?"))

    changed = cli("answer", run.order_id, stdin=Terminal("1\n", again))
    assert (changed[0], "[E-WAIT-CHANGED]" in changed[2]) == (4, True)
    assert cli("answer", run.order_id, stdin=Terminal("1\n"))[0] == 0


def asked(call_id: str, text: str = "Which database?") -> ApprovalStep:
    """A question of an agent."""
    return ApprovalStep(about="question", call_id=call_id, tool="ask", why=text, choices=("one", "two"))


def test_a_plan_that_was_edited_goes_back_to_its_order_also_if_it_is_the_last_no_longer(
    cli: Cli, api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = api.add_drone().take(api.submit(plan_first=True))
    run.presents(AgentPlan(title="Notes", points=(PlanPoint(text="Write one.txt"),)))
    editor = tmp_path / "editor.py"
    submit = [sys.executable, "-m", "control_plane.cli.main", "submit", "Another", "--project", "demo"]
    editor.write_text(
        "import subprocess, sys; from pathlib import Path\n"
        f"subprocess.run({submit}, check=True); Path(sys.argv[1]).write_text({EDITED!r})\n"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    code, _, err = cli("plan", "edit", "@last", stdin=Terminal())
    assert (code, f"fleet plan approve {run.order_id}" in err) == (0, True), err
    assert api.client.call(plans.SHOW, order_id=run.order_id)["text"] == EDITED


def test_ctrl_c_in_the_editor_is_the_editors(
    cli: Cli, api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = api.add_drone().take(api.submit(plan_first=True))
    run.presents(AgentPlan(title="Notes", points=(PlanPoint(text="Write one.txt"),)))
    editor, before = tmp_path / "editor.py", signal.getsignal(signal.SIGINT)
    # Ctrl-C and Ctrl-\ in a terminal signal all of its foreground.
    editor.write_text(
        "import os, signal, sys; from pathlib import Path\n"
        "dispositions = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGQUIT)]\n"
        "assert dispositions == [signal.default_int_handler, signal.SIG_DFL], dispositions\n"
        "for number in (signal.SIGINT, signal.SIGQUIT):\n"
        "    os.kill(os.getppid(), number)\n"
        f"Path(sys.argv[1]).write_text({EDITED!r})\n"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    code, _, err = cli("plan", "edit", run.order_id, stdin=Terminal())
    assert (code, api.client.call(plans.SHOW, order_id=run.order_id)["text"]) == (0, EDITED), err
    assert signal.getsignal(signal.SIGINT) == before


def test_a_batch_is_followed_through_a_restart_of_the_server(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.add_work()
    batch = api.client.call(batches.SUBMIT, BatchRequest(name="night", rows=rows_of("a", project="demo")))
    moments = iter((api.stop, api.start, lambda: api.client.call(batches.CANCEL, batch_id="night")))

    class Eventful(SystemClock):
        def sleep(self, seconds: float) -> None:
            next(moments)()

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    assert follow_batch(api.client, batch, str, as_json=False, clock=Eventful()) == 1
    _, lost, back, *_ = shown.getvalue().split("\n")
    assert (lost.partition(":")[0], back, next(moments, None)) == ("connection lost", "reconnected", None)


def test_a_new_batchs_name_and_an_orders_prefix_may_begin_the_ids_of_several_groups(
    cli: Cli, api: Api, tmp_path: Path
) -> None:
    order = api.add_drone().take(api.submit()).order_id
    for kind, prefix in (("batch", "xyz"), ("race", "xyz"), ("race", order[:6])):
        add_groups(api, kind, prefix)
    file = tmp_path / "xyz.jsonl"
    file.write_text(json.dumps({"id": "a", "prompt": "x"}))
    assert document(cli("batch", "run", str(file), "--project", "demo", "--detach", "--json"))["name"] == "xyz"
    code, out, err = cli("compare", order[:6], "--json")
    assert (code, [each["id"] for each in json.loads(out or "[]")]) == (0, [order]), err
    assert json.loads(cli("compare", "xyz", "--json")[2])["code"] == "E-ID-AMBIGUOUS"


def add_groups(api: Api, kind: str, prefix: str) -> None:
    """Two groups of this kind, whose ids begin with the prefix."""
    now, owner = api.core.clock.now(), system_caller(api.core).organization_id
    with api.core.database.write() as db:
        for number in range(2):
            id = f"{prefix}{kind[0]}{number}".ljust(12, "0")
            db.add(OrderGroup(id=id, organization_id=owner, kind=kind, name=id, created_at=now))


def test_what_was_canceled_is_waited_for_also_if_it_is_the_last_no_longer(
    cli: Cli, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Eventful(ListedClient):
        def follow(self, order_id: str, **options: Any) -> Iterator[tuple[str, Doc]]:
            api.client.call(orders.CANCEL, order_id=api.submit("Another")["id"])
            yield "connection", {"state": "lost", "why": "gone", "retry_in_s": 1}
            yield from super().follow(order_id, **options)

    monkeypatch.setattr(fleet, "FleetClient", Eventful)
    order = api.submit()["id"]
    canceled = cli("cancel", "@last", "--wait", "--json")
    assert (document(canceled)["id"], "gone" in canceled[2]) == (order, True)


def test_an_organization_travels_through_a_file_and_a_pipe(cli: Cli, tmp_path: Path) -> None:
    document(cli("task", "create", "Mend it", "--assignee", "user", "--json"))
    file = tmp_path / "default.jsonl"
    assert cli("organization", "export", "default", "--output", str(file))[:2] == (0, "")
    made = document(cli("organization", "import", str(file), "--name", "moved", "--json"))
    assert (made["name"], made["paused"], sum(made["tasks"].values())) == ("moved", True, 1)
    piped = cli("organization", "export", "moved")[1]
    again = document(cli("organization", "import", "-", "--name", "again", "--json", stdin=piped))
    assert again["tasks"] == made["tasks"]
    code, _, err = cli("organization", "import", "-", "--name", "cut", stdin=piped[:-200])
    assert (code, "line " in err) == (2, True)
    assert cli("organization", "show", "cut")[0] == 3


def test_a_login_link_logs_one_browser_in_once(cli: Cli, api: Api) -> None:
    _, link, _ = cli("login-link")
    assert link.startswith(f"{api.url}/login?token=")
    secret = link.strip().partition("?token=")[2]
    with api.http(None, Origin=api.url) as browser:
        answers = [browser.post("/login", data={"link": secret}).status_code for _ in range(2)]
    assert answers == [303, 401]

"""`fleet provider test` and `fleet project test`, and the wait for the result of a check."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from shared.durations import duration_label
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples
from shared.terminal.output import printable, say

if TYPE_CHECKING:
    from control_plane.contract.client.fleet import FleetClient

Doc = dict[str, Any]
EVERY_SECONDS = 0.3
ADD_SECONDS = 15.0
"""How long `add` and `edit` wait for the result, if a drone is at it: a connection is given up after ten seconds."""
TEST_SECONDS = 180.0
NO_DRONE_SECONDS = 10.0
"""How long `test` waits for a drone that takes it, unless it is told how long to wait."""
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        help=f"Seconds to wait for the result (default {TEST_SECONDS:.0f}; "
        f"{NO_DRONE_SECONDS:.0f} while no drone takes it).",
    ),
]
_ENDED = frozenset({"ok", "failed", "skipped"})
_OUTPUT_LINES = 10
_ORIGINS = {"set": "as set", "listed": "LiteLLM's list", "assumed": "assumed; --context-window sets it"}
_TOOL_CALLS = {
    "native": "work",
    "text": "are made in text",
    "ignored": "not made when asked to",
    None: "unknown",
}
_PUSH = {True: "allowed", False: "refused; each order keeps a patch and a bundle", None: "unknown"}


def add_provider_test(group: typer.Typer) -> None:
    """Register the command."""
    group.command("test", epilog=examples("fleet provider test main"))(try_provider)


def add_project_test(group: typer.Typer) -> None:
    """Register the command."""
    group.command("test", epilog=examples("fleet project test shop"))(try_project)


def try_provider(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The provider's name.", autocompletion=listed("providers:name"))
    ],
    timeout: Timeout = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> int:
    """Try a provider on a drone with one token and one tool call. Exits with 1 if it does not work."""
    from control_plane.contract.declarations import providers

    waiting = _Waiting.of(timeout)
    with client(org) as fleet:
        asked = fleet.call(providers.TEST, name=name)
        tested = waiting.until_ended(asked, lambda: fleet.call(providers.SHOW, name=name))
    return _tell(tested, f"provider {name}", _provider_text, as_json=as_json)


def try_project(
    slug: Annotated[
        str, typer.Argument(metavar="SLUG", help="The project's slug.", autocompletion=listed("projects:slug"))
    ],
    timeout: Timeout = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> int:
    """Try a project's repository, set-up and verification on a drone. Exits with 1 if it does not work."""
    from control_plane.contract.declarations import projects

    waiting = _Waiting.of(timeout)
    with client(org) as fleet:
        asked = fleet.call(projects.TEST, slug=slug)
        tested = waiting.until_ended(asked, lambda: fleet.call(projects.SHOW, slug=slug))
    return _tell(tested, f"project {slug}", _project_text, as_json=as_json)


def settled_provider(fleet: FleetClient, provider: Doc) -> tuple[Doc, int]:
    """The provider, with the result of its check if a drone has it soon, and the exit code: 1 if it does not work."""
    from control_plane.contract.declarations import providers

    return _settled(provider, lambda: fleet.call(providers.SHOW, name=provider["name"]))


def settled_project(fleet: FleetClient, project: Doc) -> tuple[Doc, int]:
    """The same for a project."""
    from control_plane.contract.declarations import projects

    return _settled(project, lambda: fleet.call(projects.SHOW, slug=project["slug"]))


def _settled(document: Doc, read: Callable[[], Doc]) -> tuple[Doc, int]:
    if document["check"]["drone"] is not None:
        document = _Waiting(ADD_SECONDS, 0.0).until_ended(document, read)
    check = document["check"]
    if check["state"] != "failed":
        return document, 0
    say("✗ it is saved, but does not work:")
    for label, text in _advice(check):
        say(f"  {label}  {text}")
    return document, 1


@dataclass(frozen=True)
class _Waiting:
    """How long to wait for a check, in seconds."""

    result: float
    drone: float
    """While no drone has it."""

    @classmethod
    def of(cls, timeout: float | None) -> _Waiting:
        """As `--timeout` says. Raises Invalid."""
        if timeout is None:
            return cls(TEST_SECONDS, NO_DRONE_SECONDS)
        if not 0 <= timeout <= 86_400:
            raise Invalid("--timeout takes 0 to 86400 seconds", code="E-USAGE", next="leave out --timeout")
        return cls(timeout, timeout)

    def until_ended(self, document: Doc, read: Callable[[], Doc]) -> Doc:
        """The document once its check has ended, or the time is up; says on stderr what it waits for."""
        began, said = time.monotonic(), ""
        while document["check"]["state"] not in _ENDED:
            if time.monotonic() - began >= (self.result if document["check"]["drone"] is not None else self.drone):
                break
            if (text := _progress(document["check"])) != said:
                say(text)
                said = text
            time.sleep(EVERY_SECONDS)
            document = read()
        return document


def _progress(check: Doc) -> str:
    """What is waited for."""
    on_drone = check["drone"] is not None
    return f"checking on {check['drone']}" if on_drone else f"waiting for a drone: {check['summary']}"


def _tell(document: Doc, what: str, text: Callable[[Doc], str], *, as_json: bool) -> int:
    check = document["check"]
    if check["state"] in {"unchecked", "checking"} and not as_json:
        say(f"✗ {what} is not checked yet: {check['summary']}")
        say(f"  The check remains, and goes to a drone as soon as one takes it: fleet {what.partition(' ')[0]} ls")
        return 1
    print_answer(document, text, as_json=as_json)
    return 0 if check["state"] == "ok" else 1


def _provider_text(provider: Doc) -> str:
    """`✓ provider main works: It answered in 0.9 s.`, with a line for each thing that is known."""
    check = provider["check"]
    return _text(f"provider {provider['name']}", check, _of_provider(provider, check))


def _project_text(project: Doc) -> str:
    """The same for a project, with each command that was run."""
    check = project["check"]
    return _text(f"project {project['slug']}", check, _of_project(check))


def _text(what: str, check: Doc, facts: Iterator[tuple[str, str]]) -> str:
    works = check["state"] == "ok"
    verdict = f"{'✓' if works else '✗'} {what} {'works' if works else 'does not work'}: {check['summary']}"
    lines = [*facts, *_advice(check)]
    width = max((len(label) for label, _ in lines), default=0)
    return "\n".join([verdict, *(f"  {label:<{width}}  {text}" for label, text in lines)]) + "\n"


def _of_provider(provider: Doc, check: Doc) -> Iterator[tuple[str, str]]:
    if check["drone"]:
        yield "drone", check["drone"]
    if check["total_ms"] is None:
        return
    yield "first token", "unknown" if check["first_token_ms"] is None else duration_label(check["first_token_ms"])
    yield "in all", duration_label(check["total_ms"])
    yield "price", _price(provider["model"], check)
    yield "tool calls", _TOOL_CALLS[check["tool_calls"]]
    yield "streaming", "works, and reports usage" if check["reports_usage"] else "works, but reports no usage"
    yield "window", f"{check['context_window']:,} tokens ({_ORIGINS[check['window_from']]})"


def _price(model: str, check: Doc) -> str:
    if check["price"] == "unknown":
        return f"unknown (next: fleet price set {model} --input USD --output USD)"
    if check["input_usd"] is None or check["output_usd"] is None:
        return f"known ({_ORIGINS[check['price']]})"
    return f"${check['input_usd']:g} in, ${check['output_usd']:g} out per million tokens ({_ORIGINS[check['price']]})"


def _of_project(check: Doc) -> Iterator[tuple[str, str]]:
    if check["drone"]:
        yield "drone", check["drone"]
    if check["remote_ms"] is not None:
        default = " (the default)" if check["branch"] == check["default_branch"] else ""
        yield "repository", f"answered in {duration_label(check['remote_ms'])}, branch {check['branch']}{default}"
        yield "push", _PUSH[check["may_push"]]
    for each in check["commands"] or ():
        code = "timed out" if each["return_code"] is None else f"exit code {each['return_code']}"
        how = f"{'passed' if each['passed'] else f'failed, {code}'}, {duration_label(each['duration_ms'])}"
        yield each["phase"], f"{' '.join(printable(each['command']).split())}: {how}"
        for line in each["output"].rstrip("\n").split("\n")[-_OUTPUT_LINES:] if each["output"] else ():
            yield "", f"  {printable(line)}"


def _advice(check: Doc) -> Iterator[tuple[str, str]]:
    """What to do about a check that failed, as labels and texts."""
    if check["state"] == "ok":
        return
    if check["next"]:
        yield "next", check["next"]
    if check["code"]:
        yield "help", f"fleet help {check['code']}"

"""`fleet provider test` and `fleet project test`, and the wait for the result of a check."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.check_text import advice, project_text, provider_text
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples
from shared.terminal.output import say

if TYPE_CHECKING:
    from control_plane.client.fleet import FleetClient

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
    from control_plane.declarations import providers

    waiting = _Waiting.of(timeout)
    with client(org) as fleet:
        asked = fleet.call(providers.TEST, name=name)
        tested = waiting.until_ended(asked, lambda: fleet.call(providers.SHOW, name=name))
    return _tell(tested, f"provider {name}", provider_text, as_json=as_json)


def try_project(
    slug: Annotated[
        str, typer.Argument(metavar="SLUG", help="The project's slug.", autocompletion=listed("projects:slug"))
    ],
    timeout: Timeout = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> int:
    """Try a project's repository, set-up and verification on a drone. Exits with 1 if it does not work."""
    from control_plane.declarations import projects

    waiting = _Waiting.of(timeout)
    with client(org) as fleet:
        asked = fleet.call(projects.TEST, slug=slug)
        tested = waiting.until_ended(asked, lambda: fleet.call(projects.SHOW, slug=slug))
    return _tell(tested, f"project {slug}", project_text, as_json=as_json)


def settled_provider(fleet: FleetClient, provider: Doc) -> tuple[Doc, int]:
    """The provider, with the result of its check if a drone has it soon, and the exit code: 1 if it does not work."""
    from control_plane.declarations import providers

    return _settled(provider, lambda: fleet.call(providers.SHOW, name=provider["name"]))


def settled_project(fleet: FleetClient, project: Doc) -> tuple[Doc, int]:
    """The same for a project."""
    from control_plane.declarations import projects

    return _settled(project, lambda: fleet.call(projects.SHOW, slug=project["slug"]))


def _settled(document: Doc, read: Callable[[], Doc]) -> tuple[Doc, int]:
    if document["check"]["drone"] is not None:
        document = _Waiting(ADD_SECONDS, 0.0).until_ended(document, read)
    check = document["check"]
    if check["state"] != "failed":
        return document, 0
    say("✗ it is saved, but does not work:")
    for label, text in advice(check):
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

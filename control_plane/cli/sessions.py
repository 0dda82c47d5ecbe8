"""`fleet session`: chats and their trees. Contains what the declarations of sessions cannot express."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from control_plane.cli import special_answers
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.derived_commands import DerivedGroup
from shared.terminal.command_line import JsonFlag, examples, print_json, put, say

SessionId = Annotated[
    str,
    typer.Argument(
        metavar="SESSION", help="The session's id, or a unique prefix of it.", autocompletion=listed("sessions:id")
    ),
]
Entry = Annotated[str, typer.Argument(metavar="ENTRY", help="An entry's id, its order's id, a label, or `root`.")]
PURPOSE = "Continue conversations: show sessions, fork them, switch to an earlier turn."


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    DerivedGroup("sessions", "session", PURPOSE, "Orders", _add_others, special_answers.session).add_to(app)


def _add_others(group: typer.Typer) -> None:
    group.command("rename", epilog=examples("fleet session rename SESSION 'The parser'"))(rename)
    group.command("label", epilog=examples("fleet session label SESSION ORDER good"))(label)
    group.command("mode", epilog=examples("fleet session mode SESSION plan"))(mode_)
    group.command("checkout", epilog=examples("fleet session checkout SESSION --directory ."))(checkout)


def rename(
    session_id: SessionId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Display name.")],
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Rename a session."""
    session = _edit(session_id, org, name=name)
    _print_changed(session, f"session {session['id']} renamed to {session['name']}", as_json=as_json)


def mode_(
    session_id: SessionId,
    mode: Annotated[
        str,
        typer.Argument(
            metavar="MODE",
            help="plan (read-only), build, test, ship, develop, or one of `fleet mode ls`.",
            autocompletion=listed("modes:name"),
        ),
    ],
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Set the mode for later orders of the session."""
    session = _edit(session_id, org, mode=mode)
    _print_changed(session, f"session {session['id']} is in mode {session['mode']}", as_json=as_json)


def label(
    session_id: SessionId,
    entry: Entry,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The label; '' removes it.")],
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Label a turn; commands accept the label as its name."""
    from control_plane.contract.declarations.sessions import LABEL, LabelRequest
    from control_plane.contract.validation.invalid_requests import checked

    request = checked(LabelRequest, {"entry": entry, "text": text}, form="fleet session label --help")
    session = client(org).call(LABEL, request, session_id=session_id)
    _print_changed(session, f"{entry} labeled {text}" if text else f"label of {entry} removed", as_json=as_json)


def checkout(
    session_id: SessionId,
    directory: Annotated[
        Path | None, typer.Option("--directory", metavar="DIR", help="Clone in which to check out the branch.")
    ] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Get a session's last work: print the git commands, or check out its branch in --directory.

    Your changes are never overwritten: if git refuses, your files stay unchanged.
    """
    from control_plane.cli.checkout import Checkout, commands
    from control_plane.contract.declarations.sessions import HEAD

    fleet = client(org)
    head = fleet.call(HEAD, session_id=session_id)
    done = back = ""
    if directory is not None:
        work = Checkout(directory, head, lambda: fleet.session_bundle(session_id))
        done, back = work.run(), work.push_command
    if as_json:
        print_json({**head, "commands": commands(head), "done": done or None})
    elif done:
        say(done)
        say(f"  next  commit, then: {back}    The session's next turn continues from your commits.")
    else:
        put("\n".join(commands(head)) + "\n")


def _edit(session_id: str, org: str | None, **changes: str) -> dict[str, Any]:
    from control_plane.contract.declarations.sessions import EDIT, SessionEdit
    from control_plane.contract.validation.invalid_requests import checked

    request = checked(SessionEdit, changes, form="fleet session edit --help")
    return cast("dict[str, Any]", client(org).call(EDIT, request, session_id=session_id))


def _print_changed(session: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json(session)
    else:
        say(sentence)

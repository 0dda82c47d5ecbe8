"""`fleet session …`: chats and their trees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from control_plane.cli.connection import Org, client
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, group, print_json, print_table, put, say

PANEL = "Orders"
Doc = dict[str, Any]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")]
ENTRY = "An entry's id, its order's id, a label, or `root`."
Mode = Annotated[str | None, typer.Option("--mode", help="plan, build, test, ship or develop.")]
Approve = Annotated[
    str | None, typer.Option("--approve", help="Which calls wait for a person: yolo (none), risky or all.")
]
Allow = Annotated[
    list[str] | None, typer.Option("--allow", help="Commands that need no approval, as a pattern; repeats.")
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("session", "Go on with what was said before: look at sessions, branch them, go back in them.")
    commands.command("ls", epilog=examples("fleet session ls --project demo"))(list_)
    commands.command("show", epilog=examples("fleet session show SESSION"))(show)
    commands.command("new", epilog=examples("fleet session new --project demo --name 'The parser'"))(new)
    commands.command("switch", epilog=examples("fleet session switch SESSION ORDER"))(switch)
    commands.command("fork", epilog=examples("fleet session fork SESSION --at ORDER"))(fork)
    commands.command("rename", epilog=examples("fleet session rename SESSION 'The parser'"))(rename)
    commands.command("label", epilog=examples("fleet session label SESSION ORDER good"))(label)
    commands.command("mode", epilog=examples("fleet session mode SESSION plan"))(mode_)
    commands.command("edit", epilog=examples("fleet session edit SESSION --approve risky"))(edit)
    commands.command("compact", epilog=examples("fleet session compact SESSION --instructions 'Keep the API'"))(compact)
    commands.command("checkout", epilog=examples("fleet session checkout SESSION --directory ."))(checkout)
    app.add_typer(commands, rich_help_panel=PANEL)


def list_(
    project: Annotated[str | None, typer.Option("--project", help="Only sessions of this project.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 50,
    every: Annotated[bool, typer.Option("--all", help="Also those of tasks and of small services.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """List sessions, the one with the newest turn first."""
    found = client(org).list_sessions(project=project, limit=limit, every=every)
    if as_json:
        print_json(found)
        return
    columns = ("SESSION", "NAME", "PROJECT", "MODE", "TURNS", "LAST ACTIVITY", "RUNNING")
    rows = [
        (s["id"], s["name"], s["project"], s["mode"], s["turns"], s["last_activity_at"], s["running"]) for s in found
    ]
    print_table(columns, rows, empty="no sessions yet; every fleet submit without --session begins one")


def show(session_id: SessionId, as_json: JsonFlag = False, org: Org = None) -> None:
    """Show a session as the tree of its turns."""
    _tell(client(org).show_session(session_id), as_json=as_json)


def new(
    project: Annotated[str | None, typer.Option("--project", help="The project's slug.")] = None,
    name: Annotated[str, typer.Option("--name", help="A name for people.")] = "",
    mode: Mode = None,
    approve: Approve = None,
    allow: Allow = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Begin a session; submit to it with --session."""
    if project is None:
        raise Invalid("--project is missing", code="E-USAGE", next="fleet session new --project SLUG")
    request: Doc = {"project": project, "name": name, "approve": approve, "allow": allow or []}
    session = client(org).create_session({**request, "mode": mode} if mode is not None else request)
    if as_json:
        print_json(session)
        return
    put(f"{session['id']}\n")
    say(f"  next  fleet submit PROMPT --project {session['project']} --session {session['id']}")


def switch(
    session_id: SessionId,
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help=ENTRY)],
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Let the next turn go on from another place of the tree; nothing is lost."""
    session = client(org).switch_session(session_id, entry)
    _done(session, f"session {session['id']} goes on from {_place(session)}", as_json=as_json)


def fork(
    session_id: SessionId,
    at: Annotated[str | None, typer.Option("--at", metavar="ENTRY", help=f"{ENTRY} Default: the last turn.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="A name for people; default: the same.")] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Begin a new session from a place of this one, which stays as it is."""
    session = client(org).fork_session(session_id, at=at, name=name)
    if as_json:
        print_json(session)
        return
    put(f"{session['id']}\n")
    say(f"forked from session {session_id}; it goes on from {_place(session)}")


def rename(
    session_id: SessionId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for people.")],
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Give a session another name."""
    session = client(org).edit_session(session_id, {"name": name})
    _done(session, f"session {session['id']} is called {session['name']}", as_json=as_json)


def label(
    session_id: SessionId,
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help=ENTRY)],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The label; '' takes it away.")],
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Label a turn, so that it can be named by that."""
    session = client(org).label_entry(session_id, entry, text)
    _done(session, f"{entry} is labeled {text}" if text else f"{entry} has no label any more", as_json=as_json)


def mode_(
    session_id: SessionId,
    mode: Annotated[str, typer.Argument(metavar="MODE", help="plan, build, test, ship or develop.")],
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Set the mode of the session's orders that are submitted from now on."""
    session = client(org).edit_session(session_id, {"mode": mode})
    _done(session, f"session {session['id']} is in mode {session['mode']}", as_json=as_json)


def edit(
    session_id: SessionId,
    name: Annotated[str | None, typer.Option("--name", help="A name for people.")] = None,
    mode: Mode = None,
    approve: Approve = None,
    allow: Allow = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Change a session; only what is named changes, for orders that are submitted from now on."""
    changes = {"name": name, "mode": mode, "approve": approve, "allow": allow}
    given = {key: value for key, value in changes.items() if value is not None}
    _tell(client(org).edit_session(session_id, given), as_json=as_json)


def compact(
    session_id: SessionId,
    instructions: Annotated[str, typer.Option("--instructions", help="What the summary must keep.")] = "",
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Let a summary stand for the conversation so far, before the next question to the model."""
    answer = client(org).compact_session(session_id, instructions)
    if as_json:
        print_json(answer)
    else:
        say(answer["told"])


def checkout(
    session_id: SessionId,
    directory: Annotated[
        Path | None, typer.Option("--directory", metavar="DIR", help="A clone to check the branch out in.")
    ] = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Get a session's last work: print the git commands, or, with --directory, check its branch out there.

    Nothing of yours is overwritten: where git refuses, your files stay as they are.
    """
    from control_plane.cli.checkout import Checkout, commands

    fleet = client(org)
    head = fleet.session_head(session_id)
    told = ""
    if directory is not None:
        told = Checkout(directory, head, lambda: fleet.session_bundle(session_id)).do()
    if as_json:
        print_json({**head, "commands": commands(head), "done": told or None})
    elif told:
        say(told)
    else:
        put("\n".join(commands(head)) + "\n")


def _tell(session: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(session)
        return
    from control_plane.cli.session_text import session_text

    put(session_text(session))


def _done(session: Doc, sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json(session)
    else:
        say(sentence)


def _place(session: Doc) -> str:
    """Where the session goes on, in words."""
    leaf = next((entry for entry in session["entries"] if entry["is_leaf"]), None)
    return f"the turn of order {leaf['turn']['order']}" if leaf else "the root"

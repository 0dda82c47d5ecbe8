"""`fleet session`: chats and their trees. Contains what the declarations of sessions cannot express."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.derived_commands import DerivedGroup, Texts
from control_plane.contract.documents.session_tree import Place, note_text, places
from shared.terminal.command_line import JsonFlag, examples, print_json, put, say
from shared.terminal.output import paint, printable

SessionId = Annotated[
    str,
    typer.Argument(
        metavar="SESSION", help="The session's id, or a unique prefix of it.", autocompletion=listed("sessions:id")
    ),
]
Entry = Annotated[str, typer.Argument(metavar="ENTRY", help="An entry's id, its order's id, a label, or `root`.")]
PURPOSE = "Continue conversations: show sessions, fork them, switch to an earlier turn."
Doc = dict[str, Any]
PROMPT = 60


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    DerivedGroup("sessions", "session", PURPOSE, "Orders", _add_others, _texts).add_to(app)


def _texts() -> Texts:
    return {
        "new": begun_text,
        "show": session_text,
        "edit": session_text,
        "switch": switched_text,
        "fork": forked_text,
        "compact": compaction_text,
    }


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


def session_text(session: Doc) -> str:
    """A session in full: its head, its tree, and the turns that have not ended."""
    lines = [
        f"session  {session['id']}  {printable(session['name']) or '(no name)'}",
        f"project  {session['project']}   mode {session['mode']}   approve {session['approve'] or 'yolo'}"
        + (f"   thinking {session['thinking']}" if session.get("thinking") else ""),
        *([f"owner    {printable(session['owner'])}"] if session.get("owner") else []),
        *(f"allow    {printable(pattern)}" for pattern in session["allow"]),
        *([f"stacked  on {', '.join(session['stacked_on'])}{_restacks(session)}"] if session.get("stacked_on") else []),
        *(f"limit    {name}={json.dumps(value)}" for name, value in session.get("limits", {}).items()),
        *([f"fork of  {session['forked_from']}"] if session["forked_from"] else []),
        *([f"compact  before the next turn  {printable(session['compact'])}"] if _due(session) else []),
        "",
        *(line for place in places(session["entries"]) for line in _place_lines(place, session)),
        *(_unfinished(turn) for turn in session["unfinished"]),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _restacks(session: Doc) -> str:
    return "" if session["restack"] else "   not brought up to date automatically"


def _due(session: Doc) -> bool:
    return session["compact"] is not None


def _place_lines(place: Place, session: Doc) -> list[str]:
    indent = "│  " * place.depth
    own = f"{indent[:-3]}├─ " if place.begins_branch else indent
    notes = [f"{indent}│    {printable(note_text(note))}" for note in place.notes]
    return [own + _own_line(place, session), *notes]


def _own_line(place: Place, session: Doc) -> str:
    entry = place.entry
    if entry is None:
        return "○ root" + ("  ← the next turn continues here" if session["leaf"] is None else "")
    turn = entry["turn"]
    words = [
        "●" if entry["on_path"] else "○",
        turn["order"],
        paint(f"{turn['status']:<8}", "green" if turn["status"] == "finished" else "red", sys.stdout),
        _short(turn["prompt"]),
        *([f"[{printable(entry['label'])}]"] if entry["label"] else []),
        *(["→ " + turn["branch"]] if turn["branch"] else []),
        *(["not included in the next turn"] if entry["error"] else []),
        *(["← the next turn continues here"] if entry["is_leaf"] else []),
    ]
    return "  ".join(words)


def _unfinished(turn: Doc) -> str:
    return f"…  {turn['order']}  {paint(turn['status'], 'yellow', sys.stdout)}  {_short(turn['prompt'])}"


def _short(text: str) -> str:
    line = " ".join(printable(text).split())
    return line if len(line) <= PROMPT else f"{line[: PROMPT - 1]}…"


def begun_text(session: Doc) -> str:
    """Print the id alone for scripts, and how to submit work to the session."""
    put(f"{session['id']}\n")
    say(f"  next  fleet submit PROMPT --project {session['project']} --session {session['id']}")
    return ""


def forked_text(session: Doc) -> str:
    """Print the new session's id alone for scripts, and where the session continues."""
    put(f"{session['id']}\n")
    say(f"forked from session {session['forked_from']}; it continues from {_place(session)}")
    return ""


def switched_text(session: Doc) -> str:
    """Say where the session continues."""
    say(f"session {session['id']} continues from {_place(session)}")
    if session.get("left"):
        say("the next turn begins with a summary of the branch that was left")
    return ""


def compaction_text(answer: Doc) -> str:
    """Say who does the compaction."""
    say(answer["told"])
    return ""


def _place(session: Doc) -> str:
    """Where the session continues, in words."""
    leaf = next((entry for entry in session["entries"] if entry["is_leaf"]), None)
    return f"the turn of order {leaf['turn']['order']}" if leaf else "the root"

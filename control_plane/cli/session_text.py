"""A session and its tree as text for people."""

from __future__ import annotations

import json
import sys
from typing import Any

from control_plane.contract.documents.session_tree import Place, note_text, places
from shared.terminal.output import paint, printable, put, say

Doc = dict[str, Any]
PROMPT = 60


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

"""Records docs/screens: what a person sees who uses both command lines, from a real terminal.

    python -m tests.support.screens [NAME ...]

Each screen is one command in a pseudo-terminal, as an SVG picture. The fleet behind it is real; its model is scripted.
The pictures in docs/screens/before are those of an older version.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

from drone.model.scripted.server import ScriptedServer
from shared.titles import title
from tests.acceptance.scripts import SCRIPTS
from tests.support import wait_until
from tests.support.documents import ROOT
from tests.support.repositories import calc_project
from tests.support.terminals import Terminal, running
from tests.support.whole_fleet import WholeFleet

FOLDER = ROOT / "docs" / "screens"
ROWS = 40
SECONDS = 60
"""The longest wait for a screen."""
_PROGRAMS = {"fleet": "control_plane.cli.main", "drone": "drone.cli.main"}


def _theme(background: str, text: str, normal: str, bright: str) -> TerminalTheme:
    normal_colors, bright_colors = ([*map(_rgb, colors.split())] for colors in (normal, bright))
    return TerminalTheme(_rgb(background), _rgb(text), normal_colors, bright_colors)


def _rgb(color: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(color)
    return red, green, blue


_LIGHT = _theme(
    "ffffff",
    "24292f",
    "24292f cf222e 116329 946200 0969da 8250df 1b7c83 6e7781",
    "57606a a40e26 1a7f37 633c01 218bff a475f9 3192aa 8c959f",
)
# Without the address of a font that a browser would fetch.
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
_ORDERS = {
    "done": ("Fix the failing test of add\n\nscript:fix",),
    "failed": ("Update the changelog\n\nscript:refused",),
    "waiting": ("Remove the file that is not needed\n\nscript:risky", "--approve", "all"),
    "running": ("Count to ten, slowly\n\nscript:steps",),
}
_STATES = {"done": "succeeded", "failed": "failed", "waiting": "awaiting_approval", "running": "running"}


@dataclass(frozen=True)
class Screen:
    """One picture: a command line, and the terminal in which it runs."""

    name: str
    command: str
    """As a person types it; `{running}`, `{waiting}`, `{failed}` and `{done}` are the ids of orders in these states."""
    columns: int = 80
    light: bool = False
    color: bool = True
    until: str = ""
    """Capture as soon as this is on the screen and end the command, instead of waiting for its end."""
    token: str = ""
    """An API token to use instead of the right one."""


SCREENS = (
    Screen("fleet-help", "fleet --help"),
    Screen("fleet-help-120", "fleet --help", 120),
    Screen("fleet-submit-help", "fleet submit --help"),
    Screen("fleet-provider-help", "fleet provider --help", light=True),
    Screen("drone-help", "drone --help"),
    Screen("drone-run-help", "drone run --help", 120, light=True),
    Screen("orders", "fleet orders"),
    Screen("orders-120", "fleet orders", 120),
    Screen("orders-plain", "fleet orders", color=False),
    Screen("orders-light", "fleet orders", 120, light=True),
    Screen("show", "fleet show {done}"),
    Screen("show-failed-light", "fleet show {failed}", light=True),
    Screen("show-waiting", "fleet show {waiting}", 120),
    Screen("follow", "fleet follow {done}"),
    Screen("follow-running", "fleet follow {running}", until="step 2"),
    Screen("follow-running-light", "fleet follow {running}", 120, light=True, until="step 2"),
    Screen("follow-plain", "fleet follow {done}", color=False),
    Screen("status", "fleet status"),
    Screen("doctor", "fleet doctor"),
    Screen("drones", "fleet drones"),
    Screen("drones-120-light", "fleet drones", 120, light=True),
    Screen("providers", "fleet provider ls"),
    Screen("session", "fleet session ls"),
    Screen("unknown-order", "fleet show 0123456789ab"),
    Screen("unknown-option", "fleet submit 'Fix it' --projct calc"),
    Screen("unknown-project", "fleet submit 'Fix it' --project nonsense", light=True),
    Screen("wrong-key", "fleet orders", token="faa_wrong"),
    Screen("help-code", "fleet help E-ORDER-404"),
    Screen("drone-status", "drone status"),
    Screen("drone-start", "drone start", until="waiting for orders"),
    Screen("drone-run", "drone run 'Fix the test, script:fix' --repo calc --model openai/scripted --api-base {model}"),
    Screen("fleet-up", "fleet up --port 0 --flower-port 0 --data-dir second", until="Ctrl-C"),
)


class Recorder:
    """A fleet in a directory, with orders in all states, and pictures of its screens."""

    def __init__(self, fleet: WholeFleet, model: ScriptedServer, out: Path) -> None:
        self.fleet, self.out = fleet, out
        self.words = {"model": model.url}
        remote = calc_project(fleet.root / "calc.git")
        shutil.copytree(remote, fleet.root / "calc")
        drone = fleet.workstation("oak", "--concurrency", "4", "--label", "gpu=yes")
        drone.start()
        self.idle = fleet.workstation("elm")
        self._fleet(
            "provider", "add", "main", "--no-check", "--model", "openai/scripted", "--api-base", model.url, "--no-key"
        )
        self._fleet("project", "add", "calc", "--no-check", "--git-url", remote.as_uri(), "--provider", "main")
        for state in _ORDERS:
            self._submit(state)

    def record(self, screen: Screen) -> None:
        """Run the command in a terminal and write its picture."""
        if "{running}" in screen.command:
            self._submit("running")
        shown = screen.command.format(**self.words)
        program, *words = shlex.split(shown)
        command = [sys.executable, "-m", _PROGRAMS[program], *words]
        os.chdir(self.fleet.root)
        with running(command, self._environment(screen), columns=screen.columns, rows=ROWS) as (terminal, process):
            deadline = time.monotonic() + SECONDS
            while process.poll() is None and time.monotonic() < deadline:
                if screen.until and screen.until in terminal.text:
                    break
                time.sleep(0.05)
            # Whatever belongs to the same moment is written by then.
            time.sleep(0.5)
            drawn = picture(terminal, screen, shown)
            process.terminate()
            wait_until(lambda: process.poll() is not None, seconds=60)
        (self.out / f"{screen.name}.svg").write_text(drawn)

    def _environment(self, screen: Screen) -> dict[str, str]:
        environment = {**self.fleet.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        environment["DRONE_HOME"] = self.idle.environment["DRONE_HOME"]
        if screen.color:
            del environment["NO_COLOR"]
        if screen.token:
            environment |= {"FLEET_URL": self.fleet.url, "FLEET_API_TOKEN": screen.token}
        return environment

    def _submit(self, state: str) -> None:
        order = self._fleet("submit", *_ORDERS[state], "--project", "calc", "--drone", "oak")["id"]
        wait_until(lambda: self._fleet("show", order)["status"] == _STATES[state], seconds=60)
        self.words[state] = order

    def _fleet(self, *words: str) -> Any:
        return self.fleet.json(*words)


def picture(terminal: Terminal, screen: Screen, command: str) -> str:
    """The whole output as SVG, also what has scrolled away."""
    console = Console(
        record=True,
        width=screen.columns,
        file=StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    for line in _lines(terminal):
        console.print(line, no_wrap=True, crop=False, overflow="ignore")
    theme = _LIGHT if screen.light else SVG_EXPORT_THEME
    drawn = console.export_svg(title=title(command, 60), theme=theme, code_format=_FORMAT, unique_id=screen.name)
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines() if line.strip())


def _lines(terminal: Terminal) -> Iterator[Text]:
    rows = terminal.rows
    while rows and not any(cell.data.strip() for cell in rows[-1]):
        rows.pop()
    for row in rows:
        # Few pieces make a small picture.
        runs = [("".join(cell.data for cell in run), style) for style, run in groupby(row, key=_style)]
        if not runs[-1][1]:
            runs[-1] = (runs[-1][0].rstrip(), runs[-1][1])
        yield Text.assemble(*runs)


def _style(cell: Any) -> Style:
    return Style(
        color=_color(cell.fg),
        bgcolor=_color(cell.bg),
        bold=cell.bold,
        italic=cell.italics,
        underline=cell.underscore,
        strike=cell.strikethrough,
        reverse=cell.reverse,
    )


def _color(name: str) -> str | None:
    """Rich's name of pyte's color."""
    if name == "default":
        return None
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    plain = name.removeprefix("bright").replace("brown", "yellow")
    return f"bright_{plain}" if name.startswith("bright") else plain


def index() -> str:
    """The page that shows all pictures, the older version's beside those of this one."""
    rows = [
        f"| `{each.command}`{_terminal(each)} | {_image('before', each)} | {_image('after', each)} |"
        for each in SCREENS
    ]
    return "\n".join([*_HEAD, *rows, ""])


_HEAD = (
    "# Screens",
    "",
    "Both command lines in a real terminal, before and after the work on them. `python -m tests.support.screens`",
    "records them anew; the fleet is real and its model scripted. The older version is one from before the first "
    "release.",
    "",
    "| command | before | after |",
    "|---|---|---|",
)


def _terminal(screen: Screen) -> str:
    words = [f"{screen.columns} columns", *(["light"] if screen.light else []), *([] if screen.color else ["NO_COLOR"])]
    return f"<br>{', '.join(words)}"


def _image(folder: str, screen: Screen) -> str:
    return f"![{folder}]({folder}/{screen.name}.svg)"


def main() -> None:
    """Record all screens, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.screens", description=__doc__)
    parser.add_argument("names", nargs="*", help="screens to record; default: all")
    chosen = parser.parse_args()
    out = FOLDER / "after"
    (FOLDER / "README.md").write_text(index())
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="screens-")))
        model = stack.enter_context(ScriptedServer(SCRIPTS, chunk_delay_s=0.01))
        fleet = WholeFleet(root, drones=0)
        stack.callback(fleet.close)
        fleet.start()
        recorder = Recorder(fleet, model, out)
        for screen in SCREENS:
            if not chosen.names or screen.name in chosen.names:
                recorder.record(screen)


if __name__ == "__main__":
    main()

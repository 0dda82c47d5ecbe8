"""Stand-ins for code hosts: a server like Gitea with its repositories, and `gh`, `glab` and `tea` that log calls."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.git_servers import GitHttpServer, _GitHandler

TOKEN = "gitea-token-0123456789"
Doc = dict[str, Any]


class CodeHost(GitHttpServer):
    """Serves the repositories below `root` by git, and pull requests as Gitea does; everything is kept in memory."""

    def __init__(self, root: Path, login: str = "") -> None:
        super().__init__(root, login)
        self.RequestHandlerClass = _HostHandler
        self.pulls: list[Doc] = []
        self.comments: list[Doc] = []
        self.asked: list[tuple[str, str, str]] = []
        """Method, path and Authorization header of each API request."""
        self.answers: tuple[int, Doc] | None = None
        """The answer to every write request, which is then not executed."""
        self.redirect = ""
        """The target to which every API request is redirected, unless empty."""


class _HostHandler(_GitHandler):
    server: CodeHost

    def do_GET(self) -> None:
        self._host() if self.path.startswith("/api/") else self._serve()

    def do_POST(self) -> None:
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_GET()

    def _host(self) -> None:
        body = self._body()
        path = urlsplit(self.path).path
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization", "")))
        if path == "/api/v1/version":
            self._json(200, {"version": "1.24.0"})
        elif self.server.redirect:
            self._answer(307, {"Location": self.server.redirect + self.path}, b"")
        elif self.headers.get("Authorization") not in {f"token {TOKEN}", self.server.expected}:
            self._json(401, {"message": "user does not exist"})
        elif self.server.answers and self.command != "GET":
            self._json(*self.server.answers)
        else:
            self._json(*self._done(path.removeprefix("/api/v1/repos/shop/calc/").split("/"), body))

    def _done(self, path: list[str], body: bytes) -> tuple[int, Any]:
        said = json.loads(body) if body else {}
        match self.command, path:
            case "GET", ["pulls"]:
                page = parse_qs(urlsplit(self.path).query).get("page", ["1"])[0]
                return 200, [pull for pull in self.server.pulls if pull["state"] == "open" and page == "1"]
            case "POST", ["pulls"]:
                return self._create(said)
            case "POST", ["issues", number, "comments"]:
                self.server.comments.append({"number": int(number), **said})
                return 201, {"id": len(self.server.comments)}
            case _, ["pulls", number]:
                pull = self.server.pulls[int(number) - 1]
                pull.update(said)
                return 200, pull
        return 404, {"message": "not found"}

    def _create(self, said: Doc) -> tuple[int, Doc]:
        number = len(self.server.pulls) + 1
        url = self.server.url(f"shop/calc/pulls/{number}")
        made = {"number": number, "html_url": url, "state": "open", **said, "head": {"ref": said["head"]}}
        self.server.pulls.append(made)
        return 201, made

    def _json(self, status: int, answer: Any) -> None:
        self._answer(status, {"Content-Type": "application/json"}, json.dumps(answer).encode())


_TOOL = """# A stand-in for {name}: it writes down what it is asked, and answers as it was told to.
import json, os, pathlib, sys
here = pathlib.Path({folder!r})
said = {{"arguments": sys.argv[1:], "stdin": sys.stdin.read(), "tokens": sorted(n for n in os.environ if "TOKEN" in n)}}
with (here / "{name}.asked").open("a") as log:
    log.write(json.dumps(said) + "\\n")
answers = json.loads((here / "{name}.answers").read_text())
line = " ".join(sys.argv[1:])
for pattern, (code, out, err) in answers:
    if pattern in line:
        sys.stdout.write(out)
        sys.stderr.write(err)
        sys.exit(code)
sys.exit("no answer for " + line)
"""


@dataclass
class Tool:
    """A code host's command-line tool, as a program in a folder of the test."""

    folder: Path
    name: str

    def answers(self, *answers: tuple[str, Any]) -> None:
        """Set the answer for command lines that contain a text: JSON for stdout, or exit code, stdout and stderr."""
        told = [(part, said if isinstance(said, tuple) else (0, json.dumps(said), "")) for part, said in answers]
        (self.folder / f"{self.name}.answers").write_text(json.dumps(told))

    def asked(self, part: str = "") -> list[Doc]:
        """The logged calls whose command line contains `part`."""
        log = self.folder / f"{self.name}.asked"
        lines = map(json.loads, log.read_text().splitlines()) if log.exists() else ()
        return [line for line in lines if part in " ".join(line["arguments"])]


def install(folder: Path, name: str, *answers: tuple[str, Any]) -> Tool:
    """Write the program; the caller must put `folder` into PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    program, code = folder / name, folder / f"{name}.py"
    code.write_text(_TOOL.format(name=name, folder=str(folder)))
    # Started by a shell, because a `#!` line ends at the first space, and Python's path may contain one.
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(code))} "$@"\n')
    program.chmod(0o755)
    tool = Tool(folder, name)
    tool.answers(*answers)
    return tool

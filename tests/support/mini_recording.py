"""Runs of mini-swe-agent itself against the scripted model (a stand-in): trajectories that `drone replay` must play.

    python -m tests.support.mini_recording --mini VENV

makes the stored ones anew. VENV is an environment of its own with mini-swe-agent, and with `mcp`, which litellm needs
for calls with tools. The commands are chosen so that what they print is the same on every Linux: no times, no messages
of the shell itself.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drone.model.scripted.script import Book, NoReply, Reply
from drone.model.scripted.server import ScriptedServer
from tests.support.scripted_model import Script

RECORDINGS = Path(__file__).parents[1] / "recordings"
FORMS = ("toolcall", "textbased")
TIMEOUT_S = 3
"""For one command; one of them takes longer."""
RUN_SECONDS = 300
_SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_PROSE = "An error occurred while executing the command: "
"""The prefix of error messages; the rest of the message comes from Python."""
_OBSERVATION = (
    "{% if output.exception_info %}<exception>{{ output.exception_info }}</exception>\n{% endif %}"
    "<returncode>{{ output.returncode }}</returncode>\n"
    "{% if output.output | length < 10000 %}<output>\n{{ output.output }}</output>"
    "{% else %}<output_head>\n{{ output.output[:5000] }}\n</output_head>\n"
    "<elided_chars>\n{{ output.output | length - 10000 }}\n</elided_chars>\n"
    "<output_tail>\n{{ output.output[-5000:] }}\n</output_tail>{% endif %}"
)


class InOrder(Book):
    """Replies in order, for any request: mini-swe-agent keeps no answer that it could not act on."""

    def __init__(self, replies: Sequence[Mapping[str, Any]]) -> None:
        super().__init__({})
        self._replies = Script.validate_python(list(replies))
        self._asked = -1
        self._guard = threading.Lock()

    def reply(self, messages: Sequence[Mapping[str, Any]], **_: Any) -> tuple[int, Reply]:
        with self._guard:
            self._asked += 1
        if self._asked >= len(self._replies):
            raise NoReply(f"the recording has {len(self._replies)} replies")
        return self._asked, self._replies[self._asked]


def make_project(path: Path) -> Path:
    """The project of the recordings: the same commit on every machine."""
    shutil.copytree(RECORDINGS / "project", path)
    for words in (["init", "-q", "--initial-branch=main"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", "-c", "core.fileMode=false", *words], cwd=path, env=_git_environment(), check=True)
    return path


def record(form: str, mini: Path, project: Path, scratch: Path) -> dict[str, Any]:
    """Run the mini-swe-agent of the environment `mini` on a new project; return its trajectory as a document."""
    make_project(project)
    scratch.mkdir(parents=True, exist_ok=True)
    output = scratch / f"{form}.traj.json"
    config = scratch / f"{form}.yaml"
    config.write_text(json.dumps(_config(form, project)))
    options = ["--exit-immediately"] if form == "toolcall" else ["--agent-class", "default"]
    with ScriptedServer(InOrder(_replies(form, project))) as server:
        done = subprocess.run(
            [mini / "bin" / "mini", "-c", config, "-o", output, "-t", "Mend the total.", "-y", *options],
            cwd=scratch,
            env=_environment(scratch, server.url),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return _neutral(json.loads(output.read_text()))


def _commands(project: Path) -> list[str]:
    """The commands of the model, in order; the first two are in one message if the form allows it."""
    return [
        "cat total.sh",
        "cat -n prices.csv",
        "ls -1 && git log --oneline",
        "sh check.sh",
        "cat missing.txt && echo after",
        "printf 'before\\n'; sleep 20; printf 'after\\n'",
        "seq 1 5000",
        f"cd {project} && pwd && git status --short --branch",
        "cat notes.md; printf 'caf\\303 broken \\377\\n'",
        "printf 'one\\r\\ntwo\\rthree\\n'; printf 'no end'",
        "no-such-program 2>/dev/null",
        "kill -9 $$",
        'printf \'%s %s\' "$LC_ALL" "$RECORDED"; cat',
        "sed -i 's/sum += $3/sum += $2 * $3/' total.sh && git diff",
        "sh check.sh",
        "cat <<'END' > added.txt\nfirst line\nsecond line: größe\nEND\nwc -c added.txt",
        "true",
    ]


def _replies(form: str, project: Path) -> list[dict[str, Any]]:
    first, second, *rest = _commands(project)
    last = [f"echo {_SUBMIT}; git diff --stat; cat added.txt", "echo never"]
    if form == "toolcall":
        useless = {"text": "I would rather talk."}
        return [_calls(first, second), useless, *map(_calls, rest), _calls("echo nearly", *last)]
    useless = {"text": f"{_fenced('echo one')}\n\n{_fenced('echo two')}"}
    return [*map(_spoken, (first, second)), useless, *map(_spoken, rest), _spoken(last[0])]


def _calls(*commands: str) -> dict[str, Any]:
    calls = [{"name": "bash", "arguments": {"command": command}} for command in commands]
    return {"text": "Next I run this.", "tool_calls": calls}


def _spoken(command: str) -> dict[str, Any]:
    return {"text": f"Next I run this.\n\n{_fenced(command)}"}


def _fenced(command: str) -> str:
    return f"```mswea_bash_command\n{command}\n```"


def _config(form: str, project: Path) -> dict[str, Any]:
    return {
        "agent": {
            "system_template": "You work in a small project, one command at a time.",
            "instance_template": "The task: {{ task }}",
            "cost_limit": 0,
        },
        "environment": {
            "cwd": str(project),
            "timeout": TIMEOUT_S,
            "env": {"LC_ALL": "C.UTF-8", "LANGUAGE": "", "PAGER": "cat", "GIT_PAGER": "cat", "RECORDED": "yes"},
        },
        "model": {
            "model_name": "openai/scripted",
            "model_class": "litellm" if form == "toolcall" else "litellm_textbased",
            "observation_template": _OBSERVATION,
            "format_error_template": "One command, please.",
            "cost_tracking": "ignore_errors",
        },
    }


def _environment(scratch: Path, url: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(scratch),
        "LANG": "C.UTF-8",
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": url,
        "OPENAI_API_BASE": url,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "MSWEA_CONFIGURED": "true",
        "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1",
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_GLOBAL_CONFIG_DIR": str(scratch),
    }


def _git_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    identity = {"NAME": "Tester", "EMAIL": "tester@example.org", "DATE": "2026-01-02T03:04:05+00:00"}
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in identity.items()}
    return kept | who | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def _neutral(document: dict[str, Any]) -> dict[str, Any]:
    """The document without paths of the recording machine, except the project's, and with less prose."""
    document["info"]["config"]["agent"].pop("output_path", None)
    shorter: dict[str, Any] = json.loads(json.dumps(document).replace(_PROSE, ""))
    return shorter


def main() -> None:
    """Create the stored recordings again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mini", type=Path, required=True, help="the environment that mini-swe-agent is in")
    mini, project, scratch = parser.parse_args().mini, Path("/tmp/project"), Path("/tmp/project-scratch")
    for form in FORMS:
        try:
            document = record(form, mini, project, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.rmtree(project, ignore_errors=True)
        (RECORDINGS / f"{form}.traj.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

"""mini-swe-agent: its own loop and the prompts of its `mini.yaml`, in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.eval.attempt import Attempt, Bounds, Endpoint, ProgramFailed, output_of
from tests.eval.task import EvalTask, git

NAME = "mini-swe-agent"
PROGRAM = Path(__file__).with_name("mini_program.py")
SETTINGS = {"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1", "MSWEA_COST_TRACKING": "ignore_errors"}
"""For its environment: it asks nothing, prints nothing, and goes on without a price."""


@dataclass(frozen=True)
class Mini:
    """Runs the mini-swe-agent of the environment `venv`."""

    venv: Path
    sandbox: str
    """`bwrap`: in mini-swe-agent's own bubblewrap environment; `none`: in its local one."""
    name: str = NAME

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    def version(self) -> str:
        """Raises CalledProcessError or OSError if it is not installed."""
        line = "from importlib.metadata import version; print(version('mini-swe-agent'))"
        return subprocess.run([self.python, "-c", line], capture_output=True, text=True, check=True).stdout.strip()

    def attempt(self, task: EvalTask, endpoint: Endpoint, bounds: Bounds, scratch: Path) -> Attempt:
        repository = task.make_repository(scratch / "repository")
        start = git(repository, "rev-parse", "HEAD").decode().strip()
        request = {
            "task": task.prompt,
            "directory": str(repository),
            "model": endpoint.model,
            "model_kwargs": self._model_arguments(endpoint),
            "steps": bounds.steps,
            "seconds": bounds.seconds,
            "cost_usd": bounds.cost_usd,
            "sandbox": self.sandbox,
        }
        words = [str(self.python), str(PROGRAM)]
        environment = self._environment(scratch)
        try:
            _, out = output_of(
                words, where=scratch, environment=environment, given=json.dumps(request), seconds=bounds.seconds
            )
            found = json.loads(out.splitlines()[-1])
        except (ProgramFailed, ValueError) as failed:
            found = {"answer": "", "ended": "failed", "problem": str(failed)}
        # Committed or not, in whatever branch it stands: what the directory holds is the work.
        git(repository, "add", "--all")
        patch = git(repository, "diff", "--cached", "--binary", start).decode(errors="surrogateescape")
        return Attempt(patch=patch, **found)

    def _model_arguments(self, endpoint: Endpoint) -> dict[str, Any]:
        # Without a key, an endpoint of one's own gets a placeholder, as from `drone run`.
        key = os.environ.get(endpoint.key_variable or "") or ("none" if endpoint.api_base else None)
        given = {"api_base": endpoint.api_base, "api_key": key}
        return {**(endpoint.params or {}), **{name: value for name, value in given.items() if value}}

    def _environment(self, scratch: Path) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(scratch),
            "LANG": "C.UTF-8",
            "TMPDIR": str(scratch),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            **SETTINGS,
            "MSWEA_GLOBAL_CONFIG_DIR": str(scratch),
            "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "4",
        }

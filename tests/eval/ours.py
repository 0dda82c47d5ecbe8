"""Our agent: `drone run`, with its loop, tools and sandbox, as a user without a fleet starts it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from shared.terminal.boundary import version
from tests.eval.attempt import Attempt, Bounds, Endpoint, ProgramFailed, output_of
from tests.eval.task import EvalTask

NAME = "dronefleet"


@dataclass(frozen=True)
class Ours:
    """Runs `drone run` of this environment, without the user's own prompts, servers and extensions."""

    sandbox: str
    context_window: int = 0
    name: str = NAME

    def version(self) -> str:
        return version()

    def attempt(self, task: EvalTask, endpoint: Endpoint, bounds: Bounds, scratch: Path) -> Attempt:
        repository = task.make_repository(scratch / "repository")
        home = scratch / "home"
        home.mkdir()
        trajectory = scratch / "trajectory.json"
        environment = {**os.environ, "DRONE_HOME": str(home), "TMPDIR": str(scratch)}
        environment.pop("DRONE_POLICY", None)
        words = self._words(endpoint, bounds, repository, trajectory)
        try:
            _, out = output_of(words, where=scratch, environment=environment, given=task.prompt, seconds=bounds.seconds)
            found = json.loads(out)
        except (ProgramFailed, ValueError) as failed:
            return Attempt("", "", "failed", problem=str(failed))
        if "exit_status" not in found:
            return Attempt("", "", "failed", problem=json.dumps(found)[:400])
        stats = found["stats"]
        steps = json.loads(trajectory.read_text())["info"]["model_stats"]["api_calls"]
        return Attempt(
            patch=found["patch"] or "",
            answer=found["response"] or "",
            ended=found["exit_status"] or found["status"],
            steps=steps,
            input_tokens=stats["input_tokens"],
            output_tokens=stats["output_tokens"],
            # Before the first answer nothing says whether there is a price: zero would look like one.
            cost_usd=stats["cost_usd"] if steps else None,
            problem=found["reason"] if found["status"] == "failed" else "",
        )

    def _words(self, endpoint: Endpoint, bounds: Bounds, repository: Path, trajectory: Path) -> list[str]:
        words = [str(Path(sys.executable).with_name("drone")), "run", "-", "--json", "--repo", str(repository)]
        words += ["--model", endpoint.model, "--trajectory", str(trajectory), "--sandbox", self.sandbox]
        words += ["--max-iterations", str(bounds.steps), "--max-run-seconds", str(bounds.seconds)]
        words += ["--cost-limit", str(bounds.cost_usd), "--context-window", str(self.context_window)]
        words += ["--api-base", endpoint.api_base] if endpoint.api_base else []
        words += ["--api-key-env", endpoint.key_variable] if endpoint.key_variable else []
        for name, value in (endpoint.params or {}).items():
            words += ["--param", f"{name}={json.dumps(value)}"]
        return words

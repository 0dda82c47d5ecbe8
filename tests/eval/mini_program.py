"""Runs mini-swe-agent once: reads a request as JSON from stdin, and prints what came of it as one line of JSON.

This file is run by the Python of mini-swe-agent's own environment, so it imports nothing of ours.
"""

import json
import sys
from pathlib import Path

import litellm
import minisweagent
import yaml
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.extra.bubblewrap import BubblewrapEnvironment
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

COMMAND_SECONDS = 120
"""As for our agent; mini-swe-agent's own default is 30."""


def main() -> None:
    request = json.load(sys.stdin)
    config = yaml.safe_load((Path(minisweagent.__file__).parent / "config" / "mini.yaml").read_text())
    arguments = {**config["model"].pop("model_kwargs", {}), **request["model_kwargs"]}
    model = LitellmModel(**config["model"], model_name=request["model"], model_kwargs=arguments)
    place = BubblewrapEnvironment if request["sandbox"] == "bwrap" else LocalEnvironment
    environment = place(**config["environment"], cwd=request["directory"], timeout=COMMAND_SECONDS)
    limits = {
        "step_limit": request["steps"],
        "cost_limit": request["cost_usd"],
        "wall_time_limit_seconds": int(request["seconds"]),
    }
    agent = DefaultAgent(model, environment, **{**config["agent"], **limits})
    problem = ""
    try:
        ended = agent.run(request["task"]).get("exit_status", "")
    except Exception as error:  # noqa: BLE001 - whatever ends it, the work so far is judged
        ended, problem = type(error).__name__, str(error)[:400]
    print(json.dumps(report(agent, request["model"]) | {"ended": ended, "problem": problem}))  # noqa: T201


def report(agent: DefaultAgent, model: str) -> dict[str, object]:
    """The totals of a run. An answer that mini-swe-agent could not use is in a message of the user."""
    responses = [message["extra"]["response"] for message in agent.messages if message.get("extra", {}).get("response")]
    usages = [response.get("usage") or {} for response in responses]
    spoken = [message.get("content") or "" for message in agent.messages if message.get("role") == "assistant"]
    submission = agent.messages[-1].get("extra", {}).get("submission", "") if agent.messages else ""
    return {
        "answer": submission.strip() or (spoken[-1] if spoken else ""),
        "steps": agent.n_calls,
        "input_tokens": sum(usage.get("prompt_tokens") or 0 for usage in usages),
        "output_tokens": sum(usage.get("completion_tokens") or 0 for usage in usages),
        "cost_usd": agent.cost if priced(model) else None,
    }


def priced(model: str) -> bool:
    """Whether LiteLLM knows a price: mini-swe-agent counts an unknown one as zero."""
    try:
        facts = litellm.get_model_info(model)
    except Exception:  # noqa: BLE001 - LiteLLM raises a bare Exception for an unknown model
        return False
    return bool(facts.get("input_cost_per_token"))


if __name__ == "__main__":
    main()

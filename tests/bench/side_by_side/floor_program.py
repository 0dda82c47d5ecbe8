"""The least that a step of any agent needs: one streamed LiteLLM call with the whole history, and one subprocess.

    python -m tests.bench.side_by_side.floor_program ADDRESS

The history grows as an agent's does. Nothing is recorded, checked or shown.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from drone.agent.in_memory import ECHO
from drone.model.conversion import tools_to_wire
from drone.model.litellm_import import litellm


def main(address: str) -> None:
    """Call and run until an answer asks for no command."""
    library = litellm()
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are measured."}]
    messages.append({"role": "user", "content": "Go on until there is nothing left to do."})
    tools = tools_to_wire([ECHO])
    while True:
        stream = library.completion(
            model="hosted_vllm/instant",
            api_base=address,
            api_key="none",
            messages=messages,
            tools=tools,
            stream=True,
            stream_options={"include_usage": True},
        )
        message = library.stream_chunk_builder(list(stream)).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return
        for call in message.tool_calls:
            command = json.loads(call.function.arguments)["command"]
            ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": ran.stdout})


if __name__ == "__main__":
    main(sys.argv[1])

"""Runs OpenHands once, with its terminal tool and its own record of the conversation on disk.

    python openhands_program.py ADDRESS DIRECTORY RECORD

This file is run by the Python of OpenHands's own environment, so it imports nothing of ours.
"""

import sys

from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.tools.terminal import TerminalTool
from pydantic import SecretStr

ENDLESS = 1_000_000


def main(address: str, directory: str, record: str) -> None:
    model = LLM(model="openai/instant", base_url=address, api_key=SecretStr("none"), usage_id="agent", num_retries=0)
    agent = Agent(llm=model, tools=[Tool(name=TerminalTool.name)], include_default_tools=["FinishTool"])
    conversation = Conversation(
        agent=agent,
        workspace=directory,
        persistence_dir=record,
        max_iteration_per_run=ENDLESS,
        visualizer=None,
        stuck_detection=False,
    )
    conversation.send_message("Go on until there is nothing left to do.")
    conversation.run()
    conversation.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What the server says about itself before any tool is called; the same over HTTP and over stdio."""

from __future__ import annotations

NAME = "dronefleet"
TITLE = "Dronefleet"
PATH = "/mcp"
INSTRUCTIONS = """\
Dronefleet runs coding agents on machines that people own (drones). Two ways to have work done on a project, which is
a git repository (list_projects):
- submit_order: one prompt, one run. Then get_order until its status is succeeded, failed or canceled; get_patch has
  the change.
- create_task: a thread of comments that agents (list_agents) work on and hand to each other with @name. Then get_task
  until its assignee is `user`: read the timeline, and answer with add_comment, or end it with complete_task.
Where something waits, `reason` says why and what would change it. An error has code, what, why and next; `next` is a
command of the terminal, and most have a tool of the same meaning.\
"""

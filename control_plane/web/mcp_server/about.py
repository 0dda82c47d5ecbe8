"""What the server says about itself before any tool is called; the same over HTTP and over stdio."""

from __future__ import annotations

NAME = "dronefleet"
TITLE = "Dronefleet"
PATH = "/mcp"
INSTRUCTIONS = """\
Dronefleet runs coding agents on people's own machines (drones). A project is a git repository (list_projects). There
are two ways to have work done on it:
- submit_order: one prompt, one run. Poll get_order until its status is succeeded, failed or canceled; get_patch
  returns the change.
- create_task: a thread of comments in which agents (list_agents) hand the work to each other with @name. Poll get_task
  until its assignee is `user`; then read the timeline, and reply with add_comment or close it with complete_task.
If something is waiting, `reason` says why and what would change that. An error has code, what, why and next; `next` is
a terminal command, and most have an equivalent tool.\
"""

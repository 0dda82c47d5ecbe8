"""`drone start`: take orders until asked to stop."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = ("drone start",)


def command() -> int:
    """Take work orders and run them until Ctrl-C."""
    import os

    from drone.installation import policy, settings
    from drone.worker.parent import start
    from drone.workspace import copy_owner_config
    from shared.terminal.output import say
    from shared.terminal.private_files import PRIVATE_UMASK, make_private

    chosen = settings.load()
    config = chosen.home.config()  # reports a missing registration before anything is started
    policy.load(chosen.policy_file)
    os.umask(PRIVATE_UMASK)
    for open_to_others in filter(None, (chosen.home.make_private(), make_private(Path(config.workspace), []))):
        say(f"WARNING: {open_to_others}")
    copy_owner_config(chosen.home.git_config_file, chosen.environ)
    return start(chosen.home)

"""`drone start`: take orders until asked to stop."""

from __future__ import annotations

EXAMPLES = ("drone start",)


def command() -> int:
    """Take work orders and run them until Ctrl-C."""
    from drone.installation import policy, settings
    from drone.worker.parent import start
    from drone.workspace import copy_owner_config

    chosen = settings.load()
    chosen.home.config()  # reports a missing registration before anything is started
    policy.load(chosen.policy_file)
    copy_owner_config(chosen.home.git_config_file, chosen.environ)
    return start(chosen.home)

"""Reaping takes the zombies that were adopted, and leaves a process's own to the code that waits for them."""

from __future__ import annotations

import json
import subprocess
import sys

REAPING = """
import json, subprocess, time
import psutil
from drone.processes.reaping import become_reaper, reap_adopted

def zombies():
    return sum(child.status() == psutil.STATUS_ZOMBIE for child in psutil.Process().children())

become_reaper()
own = [subprocess.Popen(["sh", "-c", "exit 3"], start_new_session=apart) for apart in (False, True)]
with subprocess.Popen(["sh", "-c", "sleep 0.1 & sleep 0.1 & exit 4"], start_new_session=True) as parent:
    pass
while zombies() < 4:
    time.sleep(0.01)
reap_adopted()
print(json.dumps([zombies(), [each.wait() for each in own], parent.returncode]))
"""


def test_orphans_are_reaped_and_the_exit_codes_of_own_children_are_not_lost() -> None:
    told = subprocess.check_output([sys.executable, "-c", REAPING], timeout=60)

    assert json.loads(told) == [2, [3, 3], 4]

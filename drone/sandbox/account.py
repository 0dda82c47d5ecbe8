"""The account of sandboxed commands on a drone that root runs: an unprivileged one without a name or other files.

Inside bubblewrap, root without capabilities still owns the machine's own files: it can read `/etc/shadow` and write
`/proc/sys`. So its commands run under another id, which then has to own the workspace and the scratch.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from drone.sandbox.trees import walk

UNPRIVILEGED = 65533
"""User and group. Neither Debian nor systemd assigns it, and it exists in a container with 16 bits of ids."""
KEPT_FOR_THE_SWITCH = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH")
"""What `switched` needs and removes; the last one to enter a workspace that only its owner can read."""
_WITHOUT_RIGHTS = ("--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs")


def is_root() -> bool:
    """Whether this process may do everything."""
    return os.geteuid() == 0


def of_commands() -> int | None:
    """The account under which commands must run in a sandbox; None: under the drone's own."""
    return UNPRIVILEGED if is_root() else None


def switch_program() -> str | None:
    """The program that `switched` starts; None if the machine does not have it."""
    return shutil.which("setpriv", path="/usr/bin:/bin:/usr/sbin:/sbin")


def switched(command: Sequence[str]) -> list[str]:
    """The command under the unprivileged account, without capabilities."""
    account = ("--reuid", str(UNPRIVILEGED), "--regid", str(UNPRIVILEGED), "--clear-groups")
    return [switch_program() or "setpriv", *account, *_WITHOUT_RIGHTS, "--", *command]


def give(path: Path, user: int) -> None:
    """Make `user` the owner of a file or directory, and of a link itself."""
    os.chown(path, user, user, follow_symlinks=False)


def give_tree(top: Path, user: int) -> bool:
    """Make `user` the owner of all below `top` and of `top`, last: then the rest is done. Whether anything changed.

    Directories are held open: a path that is replaced by a link meanwhile does not lead elsewhere.
    """
    changed = False
    for visited in walk(top):
        for entry in visited.entries:
            if entry.stat(follow_symlinks=False).st_uid != user:
                os.chown(entry.name, user, user, dir_fd=visited.descriptor, follow_symlinks=False)
                changed = True
    if top.lstat().st_uid != user:
        give(top, user)
        changed = True
    return changed


def hand_over(top: Path, user: int) -> None:
    """Give a tree to the commands' account, if that has not been done: `give_tree` does `top` last."""
    if top.lstat().st_uid != user:
        give_tree(top, user)

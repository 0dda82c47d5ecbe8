"""The demo's project: a bare repository that accepts pushes, with one commit whose test fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from shared.errors import FleetFault

SECONDS = 30
"""Time limit of one git command."""
FILES = {
    "README.md": "# slugs\n\nTurns titles into slugs for addresses. `sh test.sh` runs the test.\n",
    "slug.sh": """\
#!/bin/sh
# Print the title as a slug: lower case, words joined by single dashes, none at either end.
printf '%s' "$*" | tr 'A-Z' 'a-z' | tr -c 'a-z0-9' '-'
""",
    "test.sh": """\
#!/bin/sh
# Each line: a title, and the slug that it must give.
failed=0
expect() {
    got=$(sh slug.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok    '$1' -> '$2'"
    else
        echo "FAIL  '$1' -> '$got', expected '$2'"
        failed=1
    fi
}
expect "Hello World" "hello-world"
expect "Hello,   World!" "hello-world"
expect "(What is new in 2.0?)" "what-is-new-in-2-0"
exit $failed
""",
}
_COMMIT = """\
commit refs/heads/main
committer Dronefleet demo <demo@example.org> 1700000000 +0000
data <<END
Turn titles into slugs
END
"""


def create(remote: Path) -> None:
    """Create the bare repository; do nothing if it exists.

    The user's own git configuration is not read, because it may sign commits or add hooks. Raises FleetFault with
    git's words if git fails; nothing is left at `remote` then.
    """
    if remote.exists():
        return
    draft = remote.with_name(f".{remote.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        _git("init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(draft))
        _git("-C", str(draft), "fast-import", "--quiet", commands=_COMMIT + "".join(map(_file, FILES)))
        draft.rename(remote)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _file(name: str) -> str:
    content = FILES[name]
    return f"M 100644 inline {name}\ndata {len(content.encode())}\n{content}\n"


def _git(*arguments: str, commands: str = "") -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run(
            ["git", *arguments],
            input=commands,
            capture_output=True,
            text=True,
            env=environment,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(str(error)) from error
    if done.returncode != 0:
        raise _failed(done.stderr.strip())


def _failed(why: str) -> FleetFault:
    return FleetFault("the demo's repository could not be created", code="E-UP-DEMO", why=why, next="git --version")

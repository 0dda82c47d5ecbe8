"""The demo's project: a small repository with one failing test, behind a bare remote that accepts pushes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from stage import Stage

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


def failing_repository(stage: Stage) -> Path:
    """Create the repository and push it; return the bare remote."""
    work, remote = stage.directory / "work", stage.directory / "slugs.git"
    work.mkdir()
    for name, text in FILES.items():
        (work / name).write_text(text, encoding="utf-8")
    stage.run("git", "init", "--quiet", "--bare", "--initial-branch=main", remote)
    stage.run("git", "init", "--quiet", "--initial-branch=main", work)
    stage.run("git", "-C", work, "add", "--all")
    author = ["-c", "user.name=Demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgsign=false"]
    stage.run("git", "-C", work, *author, "commit", "--quiet", "--message", "Turn titles into slugs")
    stage.run("git", "-C", work, "push", "--quiet", remote, "main")
    return remote


def tests_pass(stage: Stage, remote: Path, branch: str) -> bool:
    """Run the repository's test on a branch, in a separate clone."""
    clone = stage.directory / f"check-{branch.replace('/', '-')}"
    stage.run("git", "clone", "--quiet", "--branch", branch, remote, clone)
    done = subprocess.run(["sh", "test.sh"], cwd=clone, capture_output=True, timeout=20, check=False)
    return done.returncode == 0

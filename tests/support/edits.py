"""An agent's possible changes to a workspace, as shell lines; the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable

_NAMES = ("calc.py", "README.md", "a", "b", "d/c", "d/e/f", "d/e/g h", "ü")
_COMMIT = "git add -A && git commit -q -m"

_Edit = Callable[[random.Random, str, str, int], str]

VISIBLE: tuple[_Edit, ...] = (
    lambda pick, one, other, n: f"mkdir -p \"$(dirname '{one}')\"; echo {n} > '{one}'",
    lambda pick, one, other, n: f"mkdir -p \"$(dirname '{one}')\"; echo {n} >> '{one}'",
    lambda pick, one, other, n: f"rm -rf '{one}'",
    lambda pick, one, other, n: f"mkdir -p \"$(dirname '{other}')\"; mv '{one}' '{other}'",
    lambda pick, one, other, n: f"chmod {pick.choice(['+x', '-x', '0444'])} '{one}'",
    lambda pick, one, other, n: f"rm -rf '{one}'; mkdir -p \"$(dirname '{one}')\"; ln -s '{other}' '{one}'",
    lambda pick, one, other, n: f"mkdir -p \"$(dirname '{one}')\"; printf '\\000\\001\\377%s' {n} > '{one}'",
    lambda pick, one, other, n: f"rm -rf '{one}'; mkdir -p '{one}/in/side'; echo {n} > '{one}/in/side/file'",
    lambda pick, one, other, n: f"echo {n} > {n}.cache; mkdir -p __pycache__; echo {n} > __pycache__/{n}",
    lambda pick, one, other, n: f"{_COMMIT} 'Commit {n}'",
    lambda pick, one, other, n: f"git add '{one}' && git commit -q -m 'Part {n}' && git reset -q",
    lambda pick, one, other, n: "git commit -q --amend -m 'Amended' -a",
    lambda pick, one, other, n: f"echo {n} > f.cache; git add -f f.cache && git commit -q -m 'Ignored {n}'",
    lambda pick, one, other, n: f"git rm -q --cached '{one}' && git commit -q -m 'Untracked {n}'",
    lambda pick, one, other, n: "git reset -q --hard HEAD~1",
    lambda pick, one, other, n: f"git mv '{one}' '{one}-{n}'; git reset -q",
    lambda pick, one, other, n: "touch calc.py",
)
"""None of these exposes a file that git ignored before; ignored files are not transferred to another drone."""
IGNORING: tuple[_Edit, ...] = (
    lambda pick, one, other, n: "echo '*.cache' > .gitignore",
    lambda pick, one, other, n: f"echo '/{other}' >> .gitignore",
    lambda pick, one, other, n: "rm -f .gitignore",
    lambda pick, one, other, n: f"echo kept > kept.cache; mv kept.cache kept{n}",
)


def edits(seed: int, count: int, kinds: tuple[_Edit, ...] = VISIBLE) -> list[str]:
    """This many lines; a line may fail, and then does so every time."""
    pick = random.Random(seed)
    lines = [pick.choice(kinds)(pick, pick.choice(_NAMES), pick.choice(_NAMES), number) for number in range(count)]
    return [f"{{ {line}; }} 2>/dev/null; true" for line in lines]

"""The recorded directory and the workspace: each stands for the other, in commands one way, in outputs the other."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_ENDS = r"(?![\w-]|\.\w)"


@dataclass(frozen=True)
class Places:
    """Where the run was recorded, and where it is played; an empty or root directory stands for nothing."""

    recorded: str
    workspace: str

    def here(self, text: str) -> str:
        """`text` as it is to be played."""
        return _moved(text, self.recorded, self.workspace)

    def there(self, text: str) -> str:
        """`text` as it would have been recorded."""
        return _moved(text, self.workspace, self.recorded)

    def arguments_here(self, arguments: str) -> str:
        """A call's arguments as they are to be played; what is no JSON object stays as it is."""
        try:
            given = json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments
        if not isinstance(given, dict) or not self.recorded:
            return arguments
        moved = {name: self.here(value) if isinstance(value, str) else value for name, value in given.items()}
        return json.dumps(moved, ensure_ascii=False)


def _moved(text: str, old: str, new: str) -> str:
    if not old or not new or old == new:
        return text
    return re.sub(rf"(?<![\w/.-]){re.escape(old)}{_ENDS}", lambda _: new, text)

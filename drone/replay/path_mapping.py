"""Maps the recorded directory to the workspace in commands, and back in outputs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_ENDS = r"(?![\w-]|\.\w)"


@dataclass(frozen=True)
class Places:
    """The directories of the recording and of the replay; an empty or root directory is not mapped."""

    recorded: str
    workspace: str

    def here(self, text: str) -> str:
        """Map `text` from the recording to the replay."""
        return _moved(text, self.recorded, self.workspace)

    def there(self, text: str) -> str:
        """Map `text` from the replay to the recording."""
        return _moved(text, self.workspace, self.recorded)

    def arguments_here(self, arguments: str) -> str:
        """Map a call's arguments to the replay; text that is not a JSON object stays unchanged."""
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

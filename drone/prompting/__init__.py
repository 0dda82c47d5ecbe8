"""User-written parts of the system prompt: files of the drone's owner and of the project, read safely.

`read_sources` returns their texts, the skills and the owner's templates, with one sentence for each that was left out;
`Templates` renders them.
"""

from __future__ import annotations

from drone.prompting.skills import Skill
from drone.prompting.sources import PromptParts, PromptSources, read_sources
from drone.prompting.templates import Templates

__all__ = ["PromptParts", "PromptSources", "Skill", "Templates", "read_sources"]

"""What people write for the system prompt: files of the drone's owner and of the project, read so that none can harm.

`read_sources` gives their texts, the skills and the owner's templates, with one sentence for each that was left out;
`Templates` renders.
"""

from __future__ import annotations

from drone.prompting.skills import Skill
from drone.prompting.sources import PromptParts, PromptSources, read_sources
from drone.prompting.templates import Templates

__all__ = ["PromptParts", "PromptSources", "Skill", "Templates", "read_sources"]

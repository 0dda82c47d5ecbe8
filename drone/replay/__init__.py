"""`drone replay`: recorded answers played through the loop, with the real tools, and what comes of them compared.

`recording` is what was recorded, `reading` gets it out of a file, `observations` out of a message; `playing` is the
model and what else the loop needs around it, `comparing` looks at each result, `replay` puts them together.
"""

from drone.replay.reading import load
from drone.replay.replay import ReplayResult, ReplayWishes, replay

__all__ = ["ReplayResult", "ReplayWishes", "load", "replay"]

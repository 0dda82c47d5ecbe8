"""`drone replay`: plays recorded answers through the loop, with the real tools, and compares the results.

`recording` is the recorded data, `reading` reads it from a file, `observations` from a message; `playback` is the model
and the rest of the loop's environment, `comparing` checks each result, `replay` combines them.
"""

from drone.replay.replay import ReplayResult, ReplayWishes, replay
from drone.replay.trajectory_file import load

__all__ = ["ReplayResult", "ReplayWishes", "load", "replay"]

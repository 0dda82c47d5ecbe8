"""Sessions as conversations: the tree of turns, the path of a run, and where the next run continues."""

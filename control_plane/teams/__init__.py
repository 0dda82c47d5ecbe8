"""Agent turns on tasks: who is next, the briefing of each turn, and hand-offs by comments."""

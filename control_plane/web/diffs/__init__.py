"""Patches as users read them: files, rows on one side or two, and what changed within a line."""

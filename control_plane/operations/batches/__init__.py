"""Batches: many orders from one file, of which a few are under way at a time."""

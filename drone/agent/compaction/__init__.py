"""Compaction: a summary replaces the older part of a conversation, so that the rest fits the window."""

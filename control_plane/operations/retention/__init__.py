"""Retention: what is removed after its time or above the limit of bytes, and what is never removed."""

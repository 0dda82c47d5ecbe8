"""Thousands of stand-in drones against a control plane of real processes, with a real broker and PostgreSQL."""

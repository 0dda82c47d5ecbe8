"""Definitions shared by both sides of the wire: models, errors, names, states, sealing."""

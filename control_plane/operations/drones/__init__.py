"""Drones: registration, the board, draining and removal."""

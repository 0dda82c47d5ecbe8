"""Drones: registration, listing, draining and removal."""

"""Flower next to the fleet: its process, and the events that keep its display correct."""

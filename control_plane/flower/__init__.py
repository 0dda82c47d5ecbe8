"""Flower beside the fleet: the window itself, and the events that keep it truthful."""

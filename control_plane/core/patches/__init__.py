"""Reads patches that git wrote. They come from drones, so anything may be in them."""

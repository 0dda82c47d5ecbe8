"""Checks for uploads."""


def is_inside(directory, path):
    """Return whether `path` is in `directory` or is that directory."""
    return path.startswith(directory)

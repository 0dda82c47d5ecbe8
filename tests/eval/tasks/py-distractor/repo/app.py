from config import current


def timeout():
    """Seconds; 0 for no limit."""
    return current().timeout


def debugging():
    return current().debug

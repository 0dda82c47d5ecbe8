import store


def list_items():
    """Return all items."""
    return list(store.ITEMS.values())

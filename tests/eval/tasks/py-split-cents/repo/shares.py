def split(cents, weights):
    """Divide `cents` in proportion to `weights`."""
    total = sum(weights)
    return [round(cents * weight / total) for weight in weights]

def to_tens(number):
    """Round to tens."""
    return round(number / 10) * 10

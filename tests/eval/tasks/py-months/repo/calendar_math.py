from datetime import date


def add_months(day, months):
    """Return the same day `months` later."""
    month = day.month + months
    year = day.year + month // 12
    return date(year, month % 12, day.day)

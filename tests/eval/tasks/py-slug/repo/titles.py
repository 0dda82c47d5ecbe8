"""Reads titles, one a line."""


def read(text):
    return [line.strip() for line in text.splitlines() if line.strip()]

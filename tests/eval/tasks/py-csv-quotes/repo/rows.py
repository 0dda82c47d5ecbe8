"""Reads the export's lines."""


def split_line(line):
    """Return the fields of one line."""
    return [field.strip('"') for field in line.rstrip("\n").split(",")]

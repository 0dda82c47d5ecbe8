"""The required form of values before they are stored, and secrets that are issued once."""

"""`fleet up`: the whole fleet on one machine, in one directory, with nothing else installed."""

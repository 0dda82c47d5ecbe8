"""The HTTP client of the command line: documents out, the fleet's own errors raised."""

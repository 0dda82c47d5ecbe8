"""One order on one drone, in its own process: from the opened envelope to the last event."""

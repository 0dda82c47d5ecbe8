"""One order on one drone, in a process of its own: from the opened envelope to the last event."""

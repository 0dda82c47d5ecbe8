"""Orders on their way to drones and back: placed, put on a queue, lost, canceled."""

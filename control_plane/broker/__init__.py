"""Redis as the control plane uses it: the queues, the drones' users, an embedded Valkey's configuration."""

"""The life of orders between the control plane and drones: placed, queued, lost, canceled."""

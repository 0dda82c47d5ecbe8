"""What waits for a user: waits of orders, ended orders, tasks and drones, as one list."""

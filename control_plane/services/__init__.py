"""Small services that drones do for the control plane, as orders with a purpose of their own."""

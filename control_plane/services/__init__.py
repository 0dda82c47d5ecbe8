"""Small services that drones perform for the control plane, as orders with a special purpose."""

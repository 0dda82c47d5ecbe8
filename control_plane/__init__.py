"""The control plane: accepts work orders, places them on drones, stores what they report."""

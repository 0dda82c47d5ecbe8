"""The control plane: takes work orders, places them on drones, keeps what they report."""

"""From the journals to the control plane: recorded events are sent in order, sealed, and sent again if lost."""

"""From the journals to the control plane: what a run recorded is sent in order, sealed, and again where it was lost."""

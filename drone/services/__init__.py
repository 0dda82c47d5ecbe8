"""Small services for the control plane: orders whose purpose is not work on the project."""

from drone.services.serve import serve

__all__ = ["serve"]

"""Every operation of the fleet, declared once: name, role, models and doors (docs/adding-an-operation.md)."""

"""The audit log: reading its records."""

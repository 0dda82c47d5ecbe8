"""The audit log: reading, exporting, verifying and keeping its records."""

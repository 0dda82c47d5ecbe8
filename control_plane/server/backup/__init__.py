"""Backups of the control plane: its rows, its blobs and, if wanted, its master key; written, checked and restored."""

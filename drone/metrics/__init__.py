"""The drone's figures for Prometheus: what its worker counts, and the port on which they are read."""

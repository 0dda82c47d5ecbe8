"""The fleet's figures for Prometheus, computed from the database and the broker at each request."""

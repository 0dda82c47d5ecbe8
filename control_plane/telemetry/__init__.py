"""What the fleet shows of itself to other systems: metrics for Prometheus, traces for OpenTelemetry."""

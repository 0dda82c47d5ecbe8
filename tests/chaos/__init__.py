"""A fleet of real processes under load, seeded faults against all of its parts, and the invariants afterwards."""

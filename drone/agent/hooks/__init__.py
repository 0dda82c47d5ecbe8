"""What extensions hear and may change while the loop runs."""

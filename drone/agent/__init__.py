"""The agentic workflow loop: what it needs from the world, how it runs, what it says to the model."""

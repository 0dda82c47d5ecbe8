"""Review the result of an order: comment lines of its diff, send them to the agent, read its answers."""

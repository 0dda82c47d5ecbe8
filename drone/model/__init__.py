"""Access to a run's model: LiteLLM behind the loop's protocol, and scripted stand-ins for tests and the demo."""

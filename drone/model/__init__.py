"""Where a run's model is reached: LiteLLM behind the loop's protocol, and scripted stand-ins for tests and the demo."""

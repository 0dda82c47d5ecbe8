"""The turns of a session as a chat: steps become what people said, what the agent said, and what it did."""

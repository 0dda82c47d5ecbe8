"""The agentic workflow loop: its interfaces, its control flow and its prompts."""

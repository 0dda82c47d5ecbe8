"""The scripted model: a stand-in behind a real HTTP endpoint."""

"""The scripted model: a stand-in behind the loop's protocol and behind a real HTTP endpoint."""

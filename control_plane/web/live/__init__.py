"""What keeps open pages up to date: topics with versions, and one stream of their changes for each browser."""

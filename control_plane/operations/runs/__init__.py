"""Requests of a drone on behalf of a run: blobs, and permission to push."""

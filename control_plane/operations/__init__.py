"""What can be done with a fleet. The command line, the HTTP interface and MCP are thin equals over these functions.

Each opens its own transaction, returns a document and raises `Refused` subclasses.
"""

"""The operations of a fleet. The command line, the HTTP API and MCP are thin layers over these functions.

Each function opens its own transaction, returns a document and raises `Refused` subclasses.
"""

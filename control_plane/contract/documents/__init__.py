"""The documents that people and scripts send and receive: the same in the terminal, over HTTP and in MCP."""

"""The MCP server: the fleet's operations as tools for models in other programs (S-124)."""

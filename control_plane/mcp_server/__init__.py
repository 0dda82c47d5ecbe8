"""The MCP server: the fleet's operations as tools for other programs' models (S-124)."""

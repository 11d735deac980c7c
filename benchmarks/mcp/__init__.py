"""The MCP server, beside fastmcp over the same document."""

"""MCP benchmark: our server beside fastmcp over the same document."""

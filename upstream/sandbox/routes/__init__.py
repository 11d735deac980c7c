"""HTTP and WebSocket routes of the sandbox, one module per API."""
